//! The clients, and what they were answered.

use std::sync::Arc;
use std::sync::Mutex;
use std::sync::atomic::{AtomicU64, AtomicUsize, Ordering};
use std::time::Duration;

use saga_reservations::grpc::RemoteReservations;
use saga_reservations::{
    Action, FencingToken, Late, Operation, Reason, Reservation, ReservationKey, Reservations, ReservationsError,
    Reserve, ResourceName, State,
};
use tonic::transport::Endpoint;

use crate::draws::Draws;

const CLIENTS: u64 = 16;
/// How long a client waits for an answer, before it asks another server.
const TIMEOUT: Duration = Duration::from_secs(1);
const BACKOFF: Duration = Duration::from_millis(20);

/// What a client was answered.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Answer {
    pub(crate) key: String,
    pub(crate) action: &'static str,
    /// The state and the token, if it was not refused.
    pub(crate) done: Option<(String, u64)>,
    /// What was asked for, by a request.
    pub(crate) resources: Vec<String>,
    /// When it was asked first, and when it was answered, by one count of all questions and answers.
    pub(crate) between: (u64, u64),
}

/// The clients of the servers.
pub(crate) struct Clients {
    servers: Vec<RemoteReservations>,
    capacities: Vec<(String, u64)>,
    answers: Mutex<Vec<Answer>>,
    keys: Mutex<Vec<String>>,
    turn: AtomicUsize,
    rounds: AtomicU64,
    moments: AtomicU64,
}

impl Clients {
    pub(crate) fn new(addresses: Vec<String>, capacities: Vec<(String, u64)>) -> Self {
        let server = |address: String| {
            RemoteReservations::on_channel(Endpoint::from_shared(address).unwrap().timeout(TIMEOUT).connect_lazy())
        };
        let servers = addresses.into_iter().map(server).collect();
        let (answers, keys, turn, rounds, moments) = Default::default();
        Self { servers, capacities, answers, keys, turn, rounds, moments }
    }

    pub(crate) async fn set_capacities(&self) {
        for (name, capacity) in &self.capacities {
            let name = ResourceName::new(name.as_str()).unwrap();
            // Under load a server may take longer than the time-out, which the rounds have for servers that stand still.
            let mut tries = 1;
            while let Err(error) = self.servers[0].set_capacity(&name, *capacity).await {
                assert!(matches!(error, ReservationsError::Unavailable { .. }) && tries < 30, "{error}");
                tries += 1;
            }
        }
    }

    /// The rounds that were finished, of all clients.
    pub(crate) fn finished(&self) -> u64 {
        self.rounds.load(Ordering::SeqCst)
    }

    pub(crate) fn rounds_of_all(rounds: u64) -> u64 {
        rounds * CLIENTS
    }

    pub(crate) fn answers(&self) -> Vec<Answer> {
        self.answers.lock().unwrap().clone()
    }

    pub(crate) async fn work(self: Arc<Self>, mut draws: Draws, rounds: u64) {
        let mut clients = tokio::task::JoinSet::new();
        for number in 0..CLIENTS {
            let (clients_of_all, mut draws) = (Arc::clone(&self), draws.fork());
            clients.spawn(async move {
                for round in 0..rounds {
                    clients_of_all.round(&format!("client-{number}-{round}"), &mut draws).await;
                    clients_of_all.rounds.fetch_add(1, Ordering::SeqCst);
                }
            });
        }
        clients.join_all().await;
    }

    /// One reservation and what becomes of it.
    async fn round(&self, key: &str, draws: &mut Draws) {
        self.keys.lock().unwrap().push(key.to_owned());
        if draws.below(20) == 0 {
            self.act(key, Action::Release { token: None }).await;
        }
        let Some((_, token)) = self.act(key, Action::Reserve(self.request(draws))).await else { return };
        let token = FencingToken(token);
        if draws.below(4) == 0 {
            self.act(key, Action::Extend { token, ttl: Duration::from_millis(draws.below(2_000) + 1) }).await;
        }
        let confirmed = match draws.below(6) {
            // It expires.
            0 => None,
            1 => self.act(key, Action::Release { token: Some(token) }).await,
            2 => self.act(key, Action::Confirm { token, late: Late::Refuse }).await,
            _ => self.act(key, Action::Confirm { token, late: Late::IfFree }).await,
        };
        if let Some((_, token)) = confirmed.filter(|(state, _)| state == "confirmed" && draws.below(3) > 0) {
            self.act(key, Action::GiveBack { token: FencingToken(token) }).await;
        }
    }

    fn request(&self, draws: &mut Draws) -> Reserve {
        let first = draws.below(self.capacities.len() as u64) as usize;
        let more = draws.below(3) as usize;
        let chosen = (0..=more).map(|step| &self.capacities[(first + step * 3) % self.capacities.len()].0);
        let quantity = draws.below(4) as u32 + 1;
        // The first one has the capacity one.
        let lines = chosen.map(|name| (name.clone(), if name == "resource-0" { 1 } else { quantity }));
        Reserve::of_lines(lines).ttl(Duration::from_millis(draws.below(1_500) + 20))
    }

    /// Repeats an operation until a server answers.
    async fn act(&self, key: &str, action: Action) -> Option<(String, u64)> {
        let name = match action {
            Action::Reserve(_) => "reserve",
            Action::Confirm { .. } => "confirm",
            Action::Release { .. } => "release",
            Action::Extend { .. } => "extend",
            _ => "return",
        };
        let resources = match &action {
            Action::Reserve(request) => request.given_lines().iter().map(|(name, _)| name.clone()).collect(),
            _ => Vec::new(),
        };
        let asked = self.moments.fetch_add(1, Ordering::SeqCst);
        let operation = Operation::new(ReservationKey::new(key).unwrap(), action);
        let ask = |server: RemoteReservations| {
            let operation = operation.clone();
            async move { server.perform(operation).await }
        };
        let answer = self.until_answered(ask).await;
        let done = answer.ok().map(|reservation| (reservation.state.to_string(), reservation.token.0));
        let between = (asked, self.moments.fetch_add(1, Ordering::SeqCst));
        let answer = Answer { key: key.to_owned(), action: name, done: done.clone(), resources, between };
        self.answers.lock().unwrap().push(answer);
        done
    }

    async fn until_answered<T, F: Future<Output = Result<T, ReservationsError>>>(
        &self,
        ask: impl Fn(RemoteReservations) -> F,
    ) -> Result<T, Reason> {
        loop {
            let server = &self.servers[self.turn.fetch_add(1, Ordering::Relaxed) % self.servers.len()];
            match ask(server.clone()).await {
                Ok(answer) => return Ok(answer),
                Err(ReservationsError::Refused(refusal)) => return Err(refusal.reason()),
                Err(_) => tokio::time::sleep(BACKOFF).await,
            }
        }
    }

    /// At the end nothing is held or confirmed.
    pub(crate) async fn give_everything_back(&self) {
        let keys = self.keys.lock().unwrap().clone();
        for key in keys {
            let valid = ReservationKey::new(key.as_str()).unwrap();
            let find = |server: RemoteReservations| {
                let key = valid.clone();
                async move { server.find(&key).await }
            };
            let found: Option<Reservation> = self.until_answered(find).await.unwrap();
            match found {
                Some(found) if found.state == State::Confirmed => {
                    self.act(&key, Action::GiveBack { token: found.token }).await;
                }
                Some(found) => _ = self.act(&key, Action::Release { token: Some(found.token) }).await,
                None => {}
            }
        }
        for (name, capacity) in &self.capacities {
            let name = ResourceName::new(name.as_str()).unwrap();
            let find = |server: RemoteReservations| {
                let name = name.clone();
                async move { server.resource(&name).await }
            };
            let mut left = self.until_answered(find).await.unwrap().unwrap();
            // In Redis a request that comes late behind a flush holds again, until it expires.
            while left.held > 0 {
                tokio::time::sleep(BACKOFF).await;
                left = self.until_answered(find).await.unwrap().unwrap();
            }
            assert_eq!((left.confirmed, left.held, left.capacity), (0, 0, *capacity), "{left:?}");
        }
    }
}
