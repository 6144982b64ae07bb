fn main() {
    let contracts = std::env::var("REVERIE_CONTRACTS").expect("the folder of reverie.proto");
    let file = format!("{contracts}/reverie.proto");
    prost_build::compile_protos(&[file], &[contracts]).expect("reverie.proto");
}
