pub mod v1 {
    include!(concat!(env!("OUT_DIR"), "/reverie.v1.rs"));
}
