//! What a handler takes besides its transaction.

use axum::extract::{FromRequest, FromRequestParts, Request};
use axum::response::{IntoResponse as _, Response};

/// The extractors of a handler, at most four. The last one may take the body.
#[diagnostic::on_unimplemented(
    message = "these are not the extractors of a handler",
    note = "a handler takes a `Tx` and up to four extractors; only the last one may take the body, such as `Json`"
)]
pub trait Arguments<St, M>: Sized + Send + 'static {
    /// Extracts them, or answers with the rejection of the first one that fails.
    ///
    /// # Cancel safety
    /// Nothing is kept when it is dropped.
    fn extract(request: Request, state: &St) -> impl Future<Output = Result<Self, Response>> + Send;
}

impl<St: Send + Sync> Arguments<St, ()> for () {
    async fn extract(_request: Request, _state: &St) -> Result<Self, Response> {
        Ok(())
    }
}

macro_rules! arguments {
    ($($part:ident)* | $last:ident) => {
        impl<St, M, $($part,)* $last> Arguments<St, M> for ($($part,)* $last,)
        where
            St: Send + Sync,
            $($part: FromRequestParts<St> + Send + 'static,)*
            $last: FromRequest<St, M> + Send + 'static,
        {
            #[allow(non_snake_case, reason = "each value has the name of its type")]
            async fn extract(request: Request, state: &St) -> Result<Self, Response> {
                #[allow(unused_mut, reason = "without parts nothing is taken out of them")]
                let (mut parts, body) = request.into_parts();
                $(
                    let $part = $part::from_request_parts(&mut parts, state).await;
                    let $part = $part.map_err(|rejection| rejection.into_response())?;
                )*
                let request = Request::from_parts(parts, body);
                let $last = $last::from_request(request, state).await;
                let $last = $last.map_err(|rejection| rejection.into_response())?;
                Ok(($($part,)* $last,))
            }
        }
    };
}

arguments!(| A);
arguments!(A | B);
arguments!(A B | C);
arguments!(A B C | D);
