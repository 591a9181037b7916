//! Functions that handle a request in a transaction.

use axum::response::{IntoResponse, Response};
use saga_core::env::BoxFuture;
use saga_core::store::IdempotencyKeys;

use super::transaction::Tx;

/// A function that handles a request in a transaction: `async fn(Tx<'_, S>, ..) -> impl IntoResponse`.
#[diagnostic::on_unimplemented(
    message = "`{Self}` does not handle a request in a transaction",
    note = "it is an `async fn` that takes a `Tx<'_, S>` by value, then up to four extractors, and returns a response"
)]
pub trait TxHandler<'a, S: IdempotencyKeys, Args>: Clone + Send + Sync + 'static {
    /// Calls the function.
    fn call(&self, tx: Tx<'a, S>, arguments: Args) -> BoxFuture<'a, Response>;
}

macro_rules! tx_handler {
    ($($argument:ident)*) => {
        impl<'a, S, F, Fut, R, $($argument),*> TxHandler<'a, S, ($($argument,)*)> for F
        where
            S: IdempotencyKeys,
            F: Fn(Tx<'a, S>, $($argument),*) -> Fut + Clone + Send + Sync + 'static,
            Fut: Future<Output = R> + Send + 'a,
            R: IntoResponse,
            $($argument: Send + 'static,)*
        {
            #[allow(non_snake_case, reason = "each value has the name of its type")]
            fn call(&self, tx: Tx<'a, S>, ($($argument,)*): ($($argument,)*)) -> BoxFuture<'a, Response> {
                let responding = self(tx, $($argument),*);
                Box::pin(async move { responding.await.into_response() })
            }
        }
    };
}

tx_handler!();
tx_handler!(A);
tx_handler!(A B);
tx_handler!(A B C);
tx_handler!(A B C D);
