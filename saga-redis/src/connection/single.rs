//! The connection to one server.

use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use redis::aio::MultiplexedConnection;
use redis::{AsyncConnectionConfig, Client, ConnectionInfo, ErrorKind, Pipeline, RedisError, ServerErrorKind, Value};
use tokio::time::Instant;

use super::failure::Unsent;
use super::policy::{ask_for_policy, check_policy};

/// One connection for all calls, which is opened again when it broke.
pub(super) struct Single {
    client: Client,
    config: AsyncConnectionConfig,
    state: Mutex<State>,
    connecting: tokio::sync::Mutex<()>,
    opened: AtomicU64,
}

#[derive(Default)]
struct State {
    open: Option<Open>,
    /// When the last attempt to connect failed, and why.
    failed: Option<(Instant, Unsent)>,
}

impl State {
    /// The open connection, or why an attempt failed after this time.
    fn since(&self, asked_at: Instant) -> Option<Result<Open, Unsent>> {
        let failed = || self.failed.as_ref().filter(|(failed_at, _)| *failed_at >= asked_at);
        self.open.clone().map(Ok).or_else(|| failed().map(|(_, problem)| Err(problem.clone())))
    }
}

#[derive(Clone)]
pub(super) struct Open {
    number: u64,
    is_new: bool,
    connection: MultiplexedConnection,
}

impl Single {
    pub(super) fn new(
        server: ConnectionInfo,
        connect_timeout: Duration,
        response_timeout: Duration,
    ) -> Result<Self, RedisError> {
        let config = AsyncConnectionConfig::new()
            .set_connection_timeout(Some(connect_timeout))
            .set_response_timeout(Some(response_timeout));
        Ok(Self {
            client: Client::open(server)?,
            config,
            state: Mutex::default(),
            connecting: tokio::sync::Mutex::default(),
            opened: AtomicU64::default(),
        })
    }

    /// Sends commands at once. If the connection turns out to be closed, they are sent again on a new one: each script may be
    /// run twice.
    pub(super) async fn send(&self, pipeline: &Pipeline) -> Result<Vec<Value>, Unsent> {
        let open = self.connection().await?;
        match self.send_on(&open, pipeline).await {
            Err(error) if !open.is_new && error.is_connection_dropped() && !error.is_timeout() => {
                let open = self.connection().await?;
                self.send_on(&open, pipeline).await.map_err(Unsent::Error)
            }
            answer => answer.map_err(Unsent::Error),
        }
    }

    async fn send_on(&self, open: &Open, pipeline: &Pipeline) -> Result<Vec<Value>, RedisError> {
        let answer = open.connection.clone().send_packed_commands(pipeline, 0, pipeline.len()).await;
        let is_other_server = |value: &Value| matches!(value, Value::ServerError(error) if error.kind() == Some(ServerErrorKind::ReadOnly));
        let is_of_no_use = match &answer {
            Ok(values) => values.iter().any(is_other_server),
            Err(error) => error.is_unrecoverable_error() || error.kind() == ErrorKind::Io,
        };
        if is_of_no_use {
            self.state().open.take_if(|current| current.number == open.number);
        }
        answer
    }

    /// The open connection, or a new one to a server that is fit for locks. Callers that need one at the same time share one attempt,
    /// and its failure: while no server answers, each would wait for the attempts of all callers before it.
    pub(super) async fn connection(&self) -> Result<Open, Unsent> {
        let asked_at = Instant::now();
        if let Some(answer) = self.state().since(asked_at) {
            return answer;
        }
        let _turn = self.connecting.lock().await;
        if let Some(answer) = self.state().since(asked_at) {
            return answer;
        }
        let opened = self.open().await;
        *self.state() = match &opened {
            Ok(open) => State { open: Some(Open { is_new: false, ..open.clone() }), failed: None },
            Err(problem) => State { open: None, failed: Some((Instant::now(), problem.clone())) },
        };
        opened
    }

    fn state(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    async fn open(&self) -> Result<Open, Unsent> {
        let connecting = self.client.get_multiplexed_async_connection_with_config(&self.config);
        let mut connection = connecting.await.map_err(Unsent::Error)?;
        let said: Value = ask_for_policy().query_async(&mut connection).await.map_err(Unsent::Error)?;
        check_policy(&said).map_err(Unsent::Unfit)?;
        let number = self.opened.fetch_add(1, Ordering::Relaxed);
        Ok(Open { number, is_new: true, connection })
    }
}
