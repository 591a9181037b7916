//! What `prost` and `tonic` generated from the `.proto` file. The test `generated` compares it.
#![allow(
    clippy::all,
    clippy::pedantic,
    missing_docs,
    missing_debug_implementations,
    unreachable_pub,
    unused_qualifications,
    reason = "it is generated"
)]

include!("generated/saga.reservations.v1.rs");

/// The description of the service, for reflection.
pub const FILE_DESCRIPTOR_SET: &[u8] = include_bytes!("generated/descriptors.bin");
