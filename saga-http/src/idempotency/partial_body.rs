//! The body of a response, also one that breaks off.

use axum::body::{Body, Bytes};
use http_body_util::BodyExt as _;

/// Reads a body to its end, or as far as it comes, and answers whether it came to its end. A body that has more bytes than it said
/// is cut.
pub(super) async fn read_as_far_as_it_comes(mut body: Body, bytes_max: usize) -> (Bytes, bool) {
    let mut read = Vec::new();
    while let Some(frame) = body.frame().await {
        match frame {
            Ok(frame) => read.extend_from_slice(frame.data_ref().unwrap_or(&Bytes::new())),
            Err(error) => {
                tracing::warn!(%error, "the body of a response broke off");
                return (read.into(), false);
            }
        }
        if read.len() > bytes_max {
            read.truncate(bytes_max);
            return (read.into(), false);
        }
    }
    (read.into(), true)
}
