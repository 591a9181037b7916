//! Calls of scripts, with the confirmation of replicas.

use std::borrow::Borrow;
use std::sync::Arc;

use redis::cluster::ClusterClient;
use redis::cluster_async::ClusterConnection;
use redis::cluster_routing::{MultipleNodeRoutingInfo, Route, RoutingInfo, SingleNodeRoutingInfo, SlotAddr};
use redis::{Cmd, ConnectionAddr, ErrorKind, Pipeline, RedisError, ServerErrorKind, Value, cmd};

use super::failure::{Unsent, failure, not_connected, timed_out};
use super::policy::{ask_for_policy, check_policy};
use super::single::Single;
use crate::error::LockError;
use crate::options::RedisOptions;
use crate::scripts::Call;

const CONNECT: &str = "connect";

/// A connection that connects again by itself.
pub struct Connection {
    servers: Servers,
    address: String,
    options: RedisOptions,
}

enum Servers {
    One(Box<Single>),
    Cluster(ClusterConnection),
}

/// What a script returned.
#[derive(Debug)]
pub struct Answer {
    /// Its words.
    pub words: Vec<String>,
    /// How many replicas have it.
    confirmed: u32,
}

impl Connection {
    /// Connects.
    ///
    /// # Errors
    /// When an option is not legal, when Redis does not answer, and when it may forget what it is given.
    ///
    /// # Cancel safety
    /// Dropped, no connection stays open.
    pub async fn open(options: RedisOptions) -> Result<Self, LockError> {
        let (servers, address) = options.servers()?;
        // While replicas confirm, Redis answers nothing on the connection.
        let response_timeout = options.response_timeout + options.confirm_timeout;
        let failed = |error| failure(CONNECT, &address, error);
        let servers = if options.is_cluster {
            let client = ClusterClient::builder(servers)
                .connection_timeout(options.connect_timeout)
                .response_timeout(response_timeout)
                .overall_response_timeout(Some(response_timeout))
                .build()
                .map_err(failed)?;
            let connecting = client.get_async_connection();
            let connected = tokio::time::timeout(options.connect_timeout, connecting).await;
            let mut cluster = connected.unwrap_or_else(|_| Err(timed_out())).map_err(failed)?;
            let all = RoutingInfo::MultiNode((MultipleNodeRoutingInfo::AllMasters, None));
            let said = cluster.route_command(ask_for_policy(), all).await.map_err(failed)?;
            check_policy(&said).map_err(|reason| LockError::Refused {
                operation: CONNECT,
                address: address.clone(),
                reason,
            })?;
            Servers::Cluster(cluster)
        } else {
            let server = servers.into_iter().next().ok_or_else(|| failed(timed_out()))?;
            let is_encrypted = matches!(server.addr(), ConnectionAddr::TcpTls { .. });
            let single = Single::new(server, options.connect_timeout, response_timeout).map_err(failed)?;
            single.connection().await.map_err(|problem| match problem {
                Unsent::Error(error) => not_connected(CONNECT, &address, is_encrypted, error),
                unfit @ Unsent::Unfit(_) => unfit.into_error(CONNECT, &address),
            })?;
            Servers::One(Box::new(single))
        };
        Ok(Self { servers, address, options })
    }

    /// The servers, without user and password.
    pub fn address(&self) -> &str {
        &self.address
    }

    /// What the keys begin with.
    pub fn prefix(&self) -> &str {
        &self.options.prefix
    }

    /// Calls a script. A failed call may have taken effect.
    ///
    /// # Errors
    /// When Redis does not answer, or refuses.
    ///
    /// # Cancel safety
    /// A dropped call takes effect or does not.
    pub async fn call(&self, call: &Call) -> Result<Answer, LockError> {
        let answer = match self.send(&[call]).await {
            Ok((words, confirmed)) => Answer::read(words, confirmed).map_err(Unsent::Error),
            Err(unsent) => Err(unsent),
        };
        answer.map_err(|unsent| unsent.into_error(call.operation, &self.address))
    }

    /// Calls a script as [`call`](Self::call) does. It fails if too few replicas confirmed an answer that `counts` selects.
    ///
    /// # Errors
    /// Those of [`call`](Self::call), and when too few replicas confirmed.
    ///
    /// # Cancel safety
    /// That of [`call`](Self::call).
    pub async fn call_confirmed(
        &self,
        call: &Call,
        counts: impl FnOnce(&[String]) -> bool,
    ) -> Result<Answer, LockError> {
        self.confirmed(call.operation, self.call(call).await?, counts)
    }

    /// Passes an answer on, unless `counts` selects it and too few replicas confirmed it.
    pub(super) fn confirmed(
        &self,
        operation: &'static str,
        answer: Answer,
        counts: impl FnOnce(&[String]) -> bool,
    ) -> Result<Answer, LockError> {
        if answer.confirmed < self.options.replicas && counts(&answer.words) {
            let (confirmed, wanted) = (answer.confirmed, self.options.replicas);
            return Err(LockError::Unconfirmed { operation, confirmed, wanted });
        }
        Ok(answer)
    }

    /// Makes calls of one script as one call, which answers each with as many words. They share their fate.
    pub(super) async fn call_all(&self, calls: &[Arc<Call>]) -> Result<Vec<Answer>, Unsent> {
        let (words, confirmed) = self.send(calls).await?;
        let words: Vec<String> = redis::from_redis_value(words).map_err(|error| Unsent::Error(error.into()))?;
        let words_each = words.len() / calls.len().max(1);
        if words_each == 0 || words_each * calls.len() != words.len() {
            return Err(Unsent::Unfit(format!("its script has {} words for {} calls", words.len(), calls.len())));
        }
        let mut words = words.into_iter();
        let answer = |_| Answer { words: words.by_ref().take(words_each).collect(), confirmed };
        Ok(calls.iter().map(answer).collect())
    }

    pub(super) fn is_cluster(&self) -> bool {
        self.options.is_cluster
    }

    /// Sends calls of one script, and its text if Redis does not have it.
    async fn send<C: Borrow<Call>>(&self, calls: &[C]) -> Result<(Value, u32), Unsent> {
        let Some(first) = calls.first().map(Borrow::borrow) else { return Ok((Value::Array(Vec::new()), 0)) };
        match self.send_command(first.key(), Call::by_hash(first.script(), calls)).await {
            Err(Unsent::Error(error)) if error.kind() == ErrorKind::Server(ServerErrorKind::NoScript) => {
                self.send_command(first.key(), Call::with_text(first.script(), calls)).await
            }
            answer => answer,
        }
    }

    /// Sends a command, and says how many replicas have what it wrote.
    async fn send_command(&self, key: &str, command: Cmd) -> Result<(Value, u32), Unsent> {
        let mut pipeline = Pipeline::new();
        pipeline.add_command(command);
        if self.options.replicas > 0 {
            // On the same connection: on another one Redis would not know what is to be confirmed.
            let timeout = self.options.confirm_timeout.as_millis().max(1) as u64;
            pipeline.add_command(cmd("WAIT").arg(self.options.replicas).arg(timeout).take());
        }
        let values = match &self.servers {
            Servers::One(single) => single.send(&pipeline).await?,
            Servers::Cluster(cluster) => {
                let route = SingleNodeRoutingInfo::SpecificNode(Route::with_key(key, SlotAddr::Master));
                let count = pipeline.len();
                cluster.clone().route_pipeline(pipeline, 0, count, route).await.map_err(Unsent::Error)?
            }
        };
        confirmations(values).map_err(Unsent::Error)
    }
}

impl std::fmt::Debug for Connection {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Connection").field("address", &self.address).finish_non_exhaustive()
    }
}

impl Answer {
    fn read(words: Value, confirmed: u32) -> Result<Self, RedisError> {
        Ok(Self { words: redis::from_redis_value(words)?, confirmed })
    }
}

/// The answer of a script, and that of `WAIT` if there is one.
fn confirmations(values: Vec<Value>) -> Result<(Value, u32), RedisError> {
    let mut values = values.into_iter().map(Value::extract_error);
    let answer = values.next().unwrap_or(Ok(Value::Nil))?;
    let confirmed = match values.next() {
        Some(confirmed) => redis::from_redis_value(confirmed?)?,
        None => 0,
    };
    Ok((answer, confirmed))
}
