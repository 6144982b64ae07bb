#!/bin/sh
# Compiles the gRPC description for Java, Go and Rust, with the tools of Debian and without network.
# A language whose tools are missing is named and left out. Nothing is left behind.
set -eu

root=$(cd "$(dirname "$0")/../.." && pwd)
contracts=$root/libs/reverie/contracts
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT INT TERM

has() {
    language=$1
    shift
    for tool in "$@"; do
        if ! command -v "$tool" >/dev/null && [ ! -e "$tool" ]; then
            echo "$language: left out, because $tool is missing"
            return 1
        fi
    done
}

check_java() {
    # Debian: protobuf-compiler protobuf-compiler-grpc-java-plugin libprotobuf-java libgrpc-java
    jars=/usr/share/java
    has java protoc javac grpc_java_plugin $jars/grpc-stub.jar $jars/protobuf.jar || return 0
    mkdir "$work/java"
    protoc -I "$contracts" --java_out="$work/java" --grpc-java_out="$work/java" \
        --plugin=protoc-gen-grpc-java="$(command -v grpc_java_plugin)" reverie.proto
    path=$jars/protobuf.jar:$jars/grpc-api.jar:$jars/grpc-stub.jar:$jars/grpc-protobuf.jar
    path=$path:$jars/guava.jar:$jars/geronimo-annotation-1.3-spec.jar
    javac -nowarn -d "$work/classes" -cp "$path" "$work"/java/reverie/v1/*.java
    echo "java: compiled"
}

check_go() {
    # Debian: protobuf-compiler protoc-gen-go-grpc golang-go golang-google-grpc-dev
    sources=/usr/share/gocode
    has go protoc go protoc-gen-go-grpc $sources/src/google.golang.org/grpc || return 0
    export GO111MODULE=off GOPATH="$work/go:$sources" GOCACHE="$work/cache"
    # The packaged protoc-gen-go may be older than its sources, and know no optional fields.
    go build -o "$work/bin/protoc-gen-go" google.golang.org/protobuf/cmd/protoc-gen-go
    module=example.org/reverie
    mkdir -p "$work/go/src"
    PATH="$work/bin:$PATH" protoc -I "$contracts" reverie.proto \
        --go_out="$work/go/src" --go_opt=Mreverie.proto=$module \
        --go-grpc_out="$work/go/src" --go-grpc_opt=Mreverie.proto=$module
    go build $module
    echo "go: compiled"
}

check_rust() {
    # Debian: protobuf-compiler cargo librust-prost-dev librust-prost-types-dev librust-prost-build-dev
    crates=/usr/share/cargo/registry
    has rust protoc cargo $crates/prost-0* $crates/prost-build-0* || return 0
    cp -r "$root/clients/proto/rust" "$work/rust"
    REVERIE_CONTRACTS=$contracts CARGO_TARGET_DIR=$work/target cargo check --quiet --offline \
        --manifest-path "$work/rust/Cargo.toml" \
        --config 'source.crates-io.replace-with="debian"' \
        --config "source.debian.directory=\"$crates\""
    echo "rust: compiled"
}

check_java
check_go
check_rust
