use std::panic::AssertUnwindSafe;
use std::pin::pin;
use std::sync::Arc;
use std::time::Duration;

use futures_util::{FutureExt as _, Stream, StreamExt as _};
use lapin::{Connection, Event};
use saga_core::transport::{TransportError, TransportErrorKind};
use tokio::sync::watch;
use tokio::task::JoinHandle;

use crate::backoff::Backoff;
use crate::connection::{REPLY_SUCCESS, open};
use crate::health::HealthCell;
use crate::options::AmqpOptions;
use crate::topology::{Needs, prepare};
use saga_core::__private::log;

/// How often a connection is looked at that says nothing of itself.
const LOOK_EVERY: Duration = Duration::from_secs(1);

/// The publisher's connection, as it stands.
#[derive(Debug, Clone)]
pub(crate) enum Link {
    /// It is there. The number counts the connections that were made.
    Up { connection: Arc<Connection>, generation: u64, is_blocked: bool },
    /// It is lost, and being made again.
    Down,
}

/// Keeps one connection alive.
#[derive(Debug)]
pub(crate) struct Supervisor {
    link: watch::Receiver<Link>,
    health: HealthCell,
    stale: watch::Sender<Option<u64>>,
    task: JoinHandle<()>,
}

impl Supervisor {
    /// Connects for the first time, and keeps the connection from then on.
    pub(crate) async fn start(options: AmqpOptions, needs: Needs) -> Result<Self, TransportError> {
        let health = HealthCell::new();
        let (connection, host) = connect(&options, &needs, &health).await?;
        let (sender, link) =
            watch::channel(Link::Up { connection: Arc::clone(&connection), generation: 0, is_blocked: false });
        let stale = watch::Sender::new(None);
        let keeper = Keeper { options, needs, health: health.clone(), link: sender, stale: stale.subscribe() };
        Ok(Self { link, health, stale, task: tokio::spawn(keeper.keep(connection, host)) })
    }

    /// The connection as it stands, and as it changes.
    pub(crate) fn link(&self) -> watch::Receiver<Link> {
        self.link.clone()
    }

    pub(crate) fn health(&self) -> &HealthCell {
        &self.health
    }

    /// The connection of this number is of no use: something of the topology is missing, or the broker does not answer. It
    /// is made again, and the topology is declared.
    pub(crate) fn renew(&self, generation: u64) {
        renew(&self.stale, generation);
    }
}

impl Drop for Supervisor {
    fn drop(&mut self) {
        self.task.abort();
    }
}

/// A caller that still has an older connection must not hide what another one found out about the present one.
fn renew(stale: &watch::Sender<Option<u64>>, generation: u64) {
    stale.send_if_modified(|stale| {
        let is_newer = stale.is_none_or(|known| known < generation);
        if is_newer {
            *stale = Some(generation);
        }
        is_newer
    });
}

struct Keeper {
    options: AmqpOptions,
    needs: Needs,
    health: HealthCell,
    link: watch::Sender<Link>,
    /// The number of the connection that a caller found to be broken.
    stale: watch::Receiver<Option<u64>>,
}

impl Keeper {
    /// Keeps a connection for ever. A panic, which would be the library's, costs that connection.
    async fn keep(self, connection: Arc<Connection>, host: usize) {
        let mut backoff = Backoff::new(self.options.reconnect_delay_max);
        let mut generation = 0;
        let mut connected = Some((connection, host));
        loop {
            let keeping = AssertUnwindSafe(self.keep_one(&mut backoff, &mut generation, connected.take()));
            if keeping.catch_unwind().await.is_err() {
                let error = "the task that keeps the publisher's connection panicked";
                log::warn!(error, "publisher connection lost");
                self.health.lost(error);
                self.link.send_replace(Link::Down);
            }
        }
    }

    /// Keeps one connection to its end; where there is none it is made first.
    async fn keep_one(&self, backoff: &mut Backoff, generation: &mut u64, connected: Option<(Arc<Connection>, usize)>) {
        let (connection, host) = if let Some(connected) = connected {
            connected
        } else {
            let (connection, host) = self.again(backoff).await;
            *generation += 1;
            log::info!("publisher connected");
            let (held, generation) = (Arc::clone(&connection), *generation);
            self.link.send_replace(Link::Up { connection: held, generation, is_blocked: false });
            (connection, host)
        };
        let problem = self.watch(&connection, *generation).await;
        log::warn!(error = problem, "publisher connection lost");
        self.health.lost(&problem);
        self.link.send_replace(Link::Down);
        self.options.turn.move_on(host);
    }

    /// Waits until the connection is lost, and says why.
    async fn watch(&self, connection: &Arc<Connection>, generation: u64) -> String {
        let mut events = Box::pin(connection.events_listener());
        let mut stale = self.stale.clone();
        let mut silence = pin!(self.silence(connection));
        loop {
            if !connection.status().connected() {
                return "the connection ended".to_owned();
            }
            tokio::select! {
                problem = self.next_event(&mut events, connection, generation) => {
                    if let Some(problem) = problem {
                        return problem;
                    }
                }
                _ = stale.wait_for(|stale| *stale == Some(generation)) => return "it was of no use, and is made anew".to_owned(),
                problem = &mut silence => return problem,
                () = tokio::time::sleep(LOOK_EVERY) => {}
            }
        }
    }

    /// Asks the broker now and then, until it does not answer. When the library's thread that reads from the connection has
    /// died, nothing else tells: the connection looks open, and its heartbeats are that thread's as well.
    async fn silence(&self, connection: &Connection) -> String {
        let limit = self.options.connect_timeout;
        loop {
            tokio::time::sleep(self.options.heartbeat).await;
            let asking = async {
                let channel = connection.create_channel().await?;
                channel.close(REPLY_SUCCESS, "OK".into()).await
            };
            let is_silent = tokio::time::timeout(limit, asking).await.is_err();
            // A broker that is short of memory or disk reads nothing from who publishes, and says so.
            if is_silent && !matches!(&*self.link.borrow(), Link::Up { is_blocked: true, .. }) {
                return format!("the broker did not answer within {limit:?}");
            }
        }
    }

    async fn next_event(
        &self,
        events: &mut (impl Stream<Item = Event> + Unpin),
        connection: &Arc<Connection>,
        generation: u64,
    ) -> Option<String> {
        match events.next().await {
            None => Some("the connection ended".to_owned()),
            Some(Event::ConnectionBlocked(reason)) => {
                log::warn!(reason, "broker blocks publishing");
                self.blocked(Some(reason), connection, generation);
                None
            }
            Some(Event::ConnectionUnblocked) => {
                log::info!("broker accepts publishing");
                self.blocked(None, connection, generation);
                None
            }
            // A channel's error comes this way too, and leaves the connection as it is.
            Some(Event::Error(error)) => (!connection.status().connected()).then(|| error.to_string()),
            Some(_) => None,
        }
    }

    fn blocked(&self, reason: Option<String>, connection: &Arc<Connection>, generation: u64) {
        let is_blocked = reason.is_some();
        self.health.blocked(reason);
        self.link.send_replace(Link::Up { connection: Arc::clone(connection), generation, is_blocked });
    }

    async fn again(&self, backoff: &mut Backoff) -> (Arc<Connection>, usize) {
        loop {
            tokio::time::sleep(backoff.next()).await;
            match connect(&self.options, &self.needs, &self.health).await {
                Ok(connected) => {
                    backoff.reset();
                    return connected;
                }
                Err(error) => {
                    let (attempts, text) = (backoff.attempts(), error.to_string());
                    // That it is lost was said. What a person has to mend is news.
                    if error.kind() == TransportErrorKind::Refused && self.health.last_error().as_ref() != Some(&text) {
                        log::warn!(attempt = attempts, %error, "publisher not connected");
                    } else {
                        log::debug!(attempt = attempts, %error, "publisher not connected");
                    }
                    self.health.failed_again(&text);
                }
            }
        }
    }
}

async fn connect(
    options: &AmqpOptions,
    needs: &Needs,
    health: &HealthCell,
) -> Result<(Arc<Connection>, usize), TransportError> {
    let (connection, host) = open(options, "publisher").await?;
    prepare(&connection, options, needs).await.inspect_err(|_| options.turn.move_on(host))?;
    health.connected(connection.status().clone());
    Ok((Arc::new(connection), host))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_older_connection_hides_no_newer_one() {
        let stale = watch::Sender::new(None);
        for (generation, newest) in [(0, 0), (2, 2), (1, 2), (3, 3)] {
            renew(&stale, generation);
            assert_eq!(*stale.borrow(), Some(newest));
        }
    }
}
