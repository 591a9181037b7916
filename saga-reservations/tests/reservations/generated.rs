//! The code for gRPC is what protox, prost and tonic generate from the `.proto` file.
//!
//! `SAGA_WRITE_GENERATED=1 cargo test -p saga-reservations --test reservations generated` writes it.

use std::fs;
use std::path::Path;

use prost::Message as _;

const PROTO: &str = "saga/reservations/v1/reservations.proto";
const FOLDER: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/src/grpc/generated");

#[test]
fn the_generated_code_is_that_of_the_proto_file() {
    let described = protox::compile([PROTO], [concat!(env!("CARGO_MANIFEST_DIR"), "/proto")]).unwrap();
    let descriptors = described.encode_to_vec();
    let folder = tempfile::tempdir().unwrap();
    tonic_prost_build::configure().out_dir(folder.path()).compile_fds(described).unwrap();
    let code = fs::read(folder.path().join("saga.reservations.v1.rs")).unwrap();
    for (name, generated) in [("saga.reservations.v1.rs", code), ("descriptors.bin", descriptors)] {
        let file = Path::new(FOLDER).join(name);
        if std::env::var_os("SAGA_WRITE_GENERATED").is_some() {
            fs::create_dir_all(FOLDER).unwrap();
            fs::write(&file, &generated).unwrap();
        }
        let is_same = fs::read(&file).is_ok_and(|written| written == generated);
        assert!(is_same, "{} differs from {PROTO}: run this test with SAGA_WRITE_GENERATED=1", file.display());
    }
}
