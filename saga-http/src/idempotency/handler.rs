//! Handlers that are given the store's transaction.

use std::fmt;
use std::marker::PhantomData;
use std::sync::Arc;

use axum::extract::Request;
use axum::handler::Handler;
use axum::response::{IntoResponse, Response};
use saga_core::env::BoxFuture;
use saga_core::store::{IdempotencyKeys, KeyedBody};

use super::arguments::Arguments;
use super::body::{HandlerBody, Slot};
use super::in_progress::InProgress;
use super::incoming::Incoming;
use super::settings::Settings;
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

/// A handler for axum's routes, which [`Idempotency::handler`](super::Idempotency::handler) makes.
pub struct IdempotentHandler<S: IdempotencyKeys, F, Args> {
    settings: Arc<Settings<S>>,
    handler: F,
    arguments: PhantomData<fn() -> Args>,
}

impl<S: IdempotencyKeys, F, Args> IdempotentHandler<S, F, Args> {
    pub(super) fn new(settings: Settings<S>, handler: F) -> Self {
        Self { settings: Arc::new(settings), handler, arguments: PhantomData }
    }
}

impl<S, F, Args, St, M> Handler<(Args, M), St> for IdempotentHandler<S, F, Args>
where
    S: IdempotencyKeys,
    F: for<'a> TxHandler<'a, S, Args>,
    Args: Arguments<St, M>,
    St: Clone + Send + Sync + 'static,
    M: 'static,
{
    type Future = BoxFuture<'static, Response>;

    fn call(self, request: Request, state: St) -> Self::Future {
        Box::pin(async move { self.answer::<St, M>(request, state).await.unwrap_or_else(|refusal| refusal) })
    }
}

impl<S: IdempotencyKeys, F, Args> IdempotentHandler<S, F, Args> {
    async fn answer<St, M>(self, request: Request, state: St) -> Result<Response, Response>
    where
        F: for<'a> TxHandler<'a, S, Args>,
        Args: Arguments<St, M>,
        St: Clone + Send + Sync + 'static,
        M: 'static,
    {
        let Self { settings, handler, .. } = self;
        let incoming = Incoming::read(request, &settings).await.map_err(IntoResponse::into_response)?;
        let incoming = Arc::new(incoming);
        // What the extractors reject takes no key.
        let mut arguments = Some(Args::extract(incoming.request(), &state).await?);
        let make = {
            let (settings, incoming) = (Arc::clone(&settings), Arc::clone(&incoming));
            move |slot: Slot| -> Box<dyn KeyedBody<S::Conn>> {
                Box::new(HandlerBody {
                    settings: Arc::clone(&settings),
                    handler: handler.clone(),
                    arguments: arguments.take(),
                    incoming: Arc::clone(&incoming),
                    state: state.clone(),
                    slot,
                    marker: PhantomData::<fn() -> M>,
                })
            }
        };
        Ok(InProgress::new(settings, incoming).run(make).await)
    }
}

impl<S: IdempotencyKeys, F: Clone, Args> Clone for IdempotentHandler<S, F, Args> {
    fn clone(&self) -> Self {
        Self { settings: Arc::clone(&self.settings), handler: self.handler.clone(), arguments: PhantomData }
    }
}

impl<S: IdempotencyKeys, F, Args> fmt::Debug for IdempotentHandler<S, F, Args> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("IdempotentHandler").finish_non_exhaustive()
    }
}
