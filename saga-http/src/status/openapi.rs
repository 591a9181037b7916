//! The routes as OpenAPI 3.1 describes them.

use utoipa::OpenApi;

use super::{dead_letters, events, list, long_poll};

#[derive(OpenApi)]
#[openapi(
    info(title = "Sagas", description = "The status of sagas, for the clients that the application lets see it."),
    paths(list::sagas, long_poll::saga, events::events, dead_letters::dead_letters, dead_letters::dead_letter)
)]
struct StatusApi;

/// The description of the [status routes](super::status_routes) in OpenAPI 3.1. `saga-http/openapi.json` is the same as a file.
///
/// # Examples
/// An application that describes its own routes with `utoipa` adds these:
/// ```
/// use utoipa::OpenApi as _;
///
/// #[derive(utoipa::OpenApi)]
/// #[openapi(info(title = "Orders", version = "1"))]
/// struct Orders;
///
/// let described = Orders::openapi().nest("/api", saga_http::openapi());
/// assert!(described.paths.paths.contains_key("/api/sagas/{key}"));
/// ```
pub fn openapi() -> utoipa::openapi::OpenApi {
    StatusApi::openapi()
}
