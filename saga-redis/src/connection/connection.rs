//! Calls of scripts, with the confirmation of replicas.

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
        match self.send(call, Call::by_hash).await {
            Err(Unsent::Error(error)) if error.kind() == ErrorKind::Server(ServerErrorKind::NoScript) => {
                self.send(call, Call::with_text).await
            }
            answer => answer,
        }
        .map_err(|unsent| unsent.into_error(call.operation, &self.address))
    }

    /// As [`call`](Self::call), and fails if too few replicas confirmed what the script wrote. `counts` says of which answers
    /// it is asked.
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
        let answer = self.call(call).await?;
        if answer.confirmed < self.options.replicas && counts(&answer.words) {
            let (confirmed, wanted) = (answer.confirmed, self.options.replicas);
            return Err(LockError::Unconfirmed { operation: call.operation, confirmed, wanted });
        }
        Ok(answer)
    }

    async fn send(&self, call: &Call, script: fn(&Call) -> Cmd) -> Result<Answer, Unsent> {
        let mut pipeline = Pipeline::new();
        pipeline.add_command(script(call));
        if self.options.replicas > 0 {
            // On the same connection: on another one Redis would not know what is to be confirmed.
            let timeout = self.options.confirm_timeout.as_millis().max(1) as u64;
            pipeline.add_command(cmd("WAIT").arg(self.options.replicas).arg(timeout).take());
        }
        let values = match &self.servers {
            Servers::One(single) => single.send(&pipeline).await?,
            Servers::Cluster(cluster) => {
                let route = SingleNodeRoutingInfo::SpecificNode(Route::with_key(call.key(), SlotAddr::Master));
                let count = pipeline.len();
                cluster.clone().route_pipeline(pipeline, 0, count, route).await.map_err(Unsent::Error)?
            }
        };
        Answer::read(values).map_err(Unsent::Error)
    }
}

impl std::fmt::Debug for Connection {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Connection").field("address", &self.address).finish_non_exhaustive()
    }
}

impl Answer {
    /// Reads the answer of a script, and that of `WAIT` if there is one.
    fn read(values: Vec<Value>) -> Result<Self, RedisError> {
        let mut values = values.into_iter().map(Value::extract_error);
        let words = values.next().unwrap_or(Ok(Value::Nil))?;
        let words = redis::from_redis_value(words)?;
        let confirmed = match values.next() {
            Some(confirmed) => redis::from_redis_value(confirmed?)?,
            None => 0,
        };
        Ok(Self { words, confirmed })
    }
}
