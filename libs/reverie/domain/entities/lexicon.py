"""Word lists for entity recognition: services, brands, error names and stop words."""

from __future__ import annotations

from reverie.domain.text.characters import word_set

SERVICES: dict[str, str] = {
    "postgres": "postgresql",
    "k8s": "kubernetes",
    "mongo": "mongodb",
    "opentelemetry": "opentelemetry",
    **{
        name: name
        for name in word_set(
            """postgresql mysql mariadb sqlite mongodb redis memcached kafka rabbitmq
        nats jetstream elasticsearch opensearch cassandra clickhouse dynamodb cockroachdb
        timescaledb neo4j influxdb couchdb scylladb duckdb qdrant milvus weaviate pgbouncer
        pgvector valkey etcd zookeeper kubernetes nginx traefik haproxy istio linkerd
        keycloak okta auth0 prometheus grafana jaeger kibana logstash fluentd datadog jenkins
        circleci argocd terraform ansible bigquery redshift supabase firebase firestore vercel
        netlify heroku cloudflare cloudfront cloudwatch minio activemq pulsar keda"""
        )
    },
}
"""Names of services in lower case, each with its canonical name."""

BRANDS = word_set(
    """GitHub GitLab BitBucket JavaScript TypeScript CoffeeScript YouTube LinkedIn OpenAI ChatGPT
    MacBook DevOps GitOps DevTools PowerPoint WordPress DigitalOcean PyCharm WebStorm GoLand
    StackOverflow JetBrains PayPal FedEx TikTok WhatsApp HubSpot LeetCode DeepMind DeepSeek
    HackerNews AirPods WebAssembly WebSocket WebSockets WebRTC GraphQL NoSQL NewSQL FastAPI
    LangChain LlamaIndex PyTorch TensorFlow NumPy SciPy CircleCI QuickBooks SharePoint OneDrive
    OneNote FaceTime AppStore PlayStation XBox BlackBerry eBay macOS watchOS tvOS iPadOS openSUSE
    jQuery HashiCorp MasterCard TechCrunch SalesForce MailChimp SurveyMonkey DuckDuckGo OpenBSD
    FreeBSD NetBSD LibreOffice OpenOffice CamelCase PascalCase camelCase snake_case kebab-case
    SemVer LaTeX CrossFit YouTuber SpaceX NextJS NodeJS PhD DevSecOps FinTech BioTech EdTech
    ServiceNow SuperMicro AliExpress AliCloud WeChat DingTalk OAuth OpenAPI OpenID README TODO
    McDonald StackExchange CodePen DevEx"""
)
"""Names of companies, products and spellings that look like code."""

ERROR_NAMES = word_set(
    """EPERM ENOENT ESRCH EINTR EIO ENXIO EBADF ECHILD EAGAIN ENOMEM EACCES EFAULT EBUSY EEXIST
    EXDEV ENODEV ENOTDIR EISDIR EINVAL ENFILE EMFILE ENOTTY EFBIG ENOSPC ESPIPE EROFS EMLINK
    EPIPE EDOM ERANGE EDEADLK ENAMETOOLONG ENOSYS ENOTEMPTY ELOOP EWOULDBLOCK EOVERFLOW EILSEQ
    ENOTSOCK EMSGSIZE EPROTO EPROTONOSUPPORT EOPNOTSUPP EAFNOSUPPORT EADDRINUSE EADDRNOTAVAIL
    ENETDOWN ENETUNREACH ECONNABORTED ECONNRESET ENOBUFS ENOTCONN ETIMEDOUT ECONNREFUSED
    EHOSTDOWN EHOSTUNREACH EALREADY EINPROGRESS ESTALE EDQUOT ECANCELED ENOTFOUND EAI_AGAIN
    ERESOLVE EINTEGRITY EJSONPARSE ETARGET EBADENGINE EUSAGE SIGSEGV SIGKILL SIGABRT SIGBUS SIGFPE
    SIGILL SIGPIPE SIGTERM OOMKilled CrashLoopBackOff ImagePullBackOff ErrImagePull
    DEADLINE_EXCEEDED RESOURCE_EXHAUSTED PERMISSION_DENIED FAILED_PRECONDITION INVALID_ARGUMENT
    ALREADY_EXISTS OUT_OF_RANGE UNAUTHENTICATED"""
)
"""Errors and signals that have a name."""

PLAIN_COMPOUND_PREFIXES = word_set(
    """self full in out-of customer co room lip public micro web third-party client multi reverse
    rest after pre post as-a civil food secret military field bus news e per cross inter one two
    application long-running hard fast sync async single social postal inner outer free the a
    http"""
)
"""First parts of ordinary compounds with -service, -worker or -gateway."""

PROSE_WORDS = word_set(
    """a an the and or but so then to on in at of for from by with without as is are was were be
    it this that these those again first before after when while because if fails failed fail
    failing took takes take works worked breaks broke hangs hung error errors step steps command
    via yesterday today now here there not no only also still just does did doesn't can will would
    should must everything all dependencies packages package succeeds passes runs ran using into
    since until per once both each any some later something things it's your my our their too
    exits exit returns yields"""
)
"""Words that end the list of packages of an install command."""

RUST_BUILT_IN_ROOTS = word_set("std core alloc crate self super")
"""Roots of Rust paths that are no packages."""

LOOPBACK_HOSTS = word_set("localhost 127.0.0.1 0.0.0.0 host.docker.internal")
