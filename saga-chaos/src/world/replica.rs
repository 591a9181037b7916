use std::path::PathBuf;
use std::process::Stdio;
use std::sync::Arc;
use std::time::Duration;

use saga_servers::{FaultProxy, ProcessGroup, Signal};
use tokio::sync::{Mutex, MutexGuard};
use tokio::time::{Instant, sleep};

use super::replica_log::ReplicaLog;
use super::waves::Wave;
use super::{ClockShift, Diary, Happened, Programs, Waves};
use crate::plan::{REPLICAS, RetentionTimes, Role};

/// How often it is looked whether a replica has ended.
const LOOK_EVERY: Duration = Duration::from_millis(50);
/// How long nothing is started after a replica could not do its work, as a supervisor would have it.
const PAUSE: Duration = Duration::from_secs(1);
/// A process that ran for so long has been of use.
const LONG_RUN: Duration = Duration::from_secs(5);
/// How long a process must have run to be worth killing.
const MOMENT: Duration = Duration::from_millis(400);
/// How long one that is to be killed may take to run: a broker that is started again takes its time.
const RUNNING_PATIENCE: Duration = Duration::from_mins(2);
const STOP_PATIENCE: Duration = Duration::from_secs(40);

/// Which replica.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub(crate) struct ReplicaKey {
    pub(crate) role: Role,
    pub(crate) nth: usize,
}

impl ReplicaKey {
    /// The replica that starts no orders but those that are started at once, and tombstones; no fault is aimed at it.
    pub(crate) const RUSH: Self = Self { role: Role::Orders, nth: REPLICAS };

    /// All of them.
    pub(crate) fn all() -> impl Iterator<Item = Self> {
        let keys = Role::ALL.into_iter().flat_map(|role| (0..REPLICAS).map(move |nth| Self { role, nth }));
        keys.chain([Self::RUSH])
    }

    pub(crate) fn name(self) -> String {
        format!("{}-{}", self.role.name(), self.nth)
    }

    /// Its number in the ledger; 0 is the world.
    pub(crate) fn number(self) -> u16 {
        (self.role as u16) * 10 + self.nth as u16 + 1
    }
}

/// What all replicas are told about time.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Times {
    pub(crate) lease: Duration,
    pub(crate) reply_timeout: Duration,
    pub(crate) concurrency: usize,
    /// How many calls outside each of them has under way at a time.
    pub(crate) calls: usize,
    /// How long what has ended is kept, where it is purged.
    pub(crate) retention: Option<RetentionTimes>,
}

/// A process that is started again whenever it ends.
#[derive(Debug, Clone)]
pub(crate) struct Replica {
    pub(crate) key: ReplicaKey,
    /// Held by what must not meet another fault of the same kind: a partition, or a proof that it works alone.
    pub(crate) busy: Arc<Mutex<()>>,
    pub(super) slot: Arc<Mutex<Slot>>,
    pub(super) shared: Arc<Shared>,
}

#[derive(Debug)]
pub(super) struct Shared {
    folder: PathBuf,
    programs: Programs,
    urls: Urls,
    times: Times,
    products: PathBuf,
    waves: Arc<Waves>,
    pub(super) diary: Arc<Diary>,
    shift: ClockShift,
    /// Its own way to its database.
    pub(super) way: FaultProxy,
}

/// Where a replica finds everything, behind the proxies.
#[derive(Debug, Clone)]
pub(super) struct Urls {
    store: String,
    transport: String,
    environment: Vec<(&'static str, String)>,
    outside: String,
}

/// Whether a fault has it for itself.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Taken {
    /// Any fault may kill or stop it.
    Free,
    /// It is stopped until it goes on.
    Stopped,
    /// No other fault may kill or stop it.
    Held,
    /// It is not started.
    Away,
}

#[derive(Debug)]
pub(super) struct Slot {
    pub(super) process: Option<ProcessGroup>,
    pub(super) log: ReplicaLog,
    started: Option<Instant>,
    wave: Option<(Wave, u64)>,
    clock_minutes: i64,
    pub(super) taken: Taken,
    /// Whether its last end was a failure.
    is_failing: bool,
    ended_badly: u64,
}

/// What it needs to know about the world.
#[derive(Debug)]
pub(crate) struct Setting {
    pub(crate) folder: PathBuf,
    pub(crate) programs: Programs,
    pub(crate) store: String,
    pub(crate) transport: String,
    /// What the transport finds there.
    pub(crate) environment: Vec<(&'static str, String)>,
    pub(crate) outside: String,
    pub(crate) times: Times,
    pub(crate) products: PathBuf,
    pub(crate) waves: Arc<Waves>,
    pub(crate) diary: Arc<Diary>,
    pub(crate) shift: ClockShift,
}

impl Slot {
    fn new(log: ReplicaLog) -> Self {
        Self {
            process: None,
            log,
            started: None,
            wave: None,
            clock_minutes: 0,
            taken: Taken::Free,
            is_failing: false,
            ended_badly: 0,
        }
    }
}

impl Replica {
    pub(crate) async fn new(key: ReplicaKey, setting: Setting) -> anyhow::Result<Self> {
        let Setting { folder, programs, store, transport, environment, outside, times, products, waves, diary, shift } =
            setting;
        let way = FaultProxy::start(&store).await?;
        let store = format!("{}?application_name={}", way.url(), key.name());
        let urls = Urls { store, transport, environment, outside };
        let slot = Slot::new(ReplicaLog::at(folder.join(format!("{}.log", key.name()))));
        let shared = Shared { folder, programs, urls, times, products, waves, diary, shift, way };
        Ok(Self { key, busy: Arc::default(), slot: Arc::new(Mutex::new(slot)), shared: Arc::new(shared) })
    }

    /// Keeps it running, as a supervisor does. It never ends by itself.
    pub(crate) async fn supervise(&self) -> anyhow::Result<()> {
        loop {
            let paused = self.look().await?;
            sleep(if paused { PAUSE } else { LOOK_EVERY }).await;
        }
    }

    /// SIGKILL, as soon as it has run for a moment. It is started again with the right time.
    pub(crate) async fn kill(&self) -> anyhow::Result<bool> {
        self.kill_and_shift(0).await
    }

    /// SIGKILL, as soon as it has run for a moment. It is started again with its clock so many minutes off.
    pub(crate) async fn kill_and_shift(&self, minutes: i64) -> anyhow::Result<bool> {
        let Some(mut slot) = self.running().await else { return Ok(false) };
        let Some(mut process) = slot.process.take() else { return Ok(false) };
        process.kill().await?;
        self.shared.diary.enter(self.key.number(), Happened::Killed);
        slot.clock_minutes = minutes;
        self.start(&mut slot)?;
        Ok(true)
    }

    /// SIGSTOP, and after that time SIGCONT. No other fault kills it meanwhile.
    pub(crate) async fn pause(&self, time: Duration) -> anyhow::Result<bool> {
        if !self.stop().await? {
            return Ok(false);
        }
        sleep(time).await;
        self.go_on().await
    }

    /// SIGSTOP. No other fault kills it until it goes on.
    pub(crate) async fn stop(&self) -> anyhow::Result<bool> {
        let Some(mut slot) = self.running().await else { return Ok(false) };
        let Some(process) = slot.process.as_mut() else { return Ok(false) };
        process.signal(Signal::Stop)?;
        slot.taken = Taken::Stopped;
        self.shared.diary.enter(self.key.number(), Happened::Stopped);
        Ok(true)
    }

    /// SIGCONT, if it was stopped.
    pub(crate) async fn go_on(&self) -> anyhow::Result<bool> {
        let mut slot = self.slot.lock().await;
        let was_stopped = slot.taken == Taken::Stopped;
        if was_stopped {
            slot.taken = Taken::Free;
        }
        if was_stopped && let Some(process) = slot.process.as_mut() {
            process.signal(Signal::Continue)?;
            self.shared.diary.enter(self.key.number(), Happened::Continued);
        }
        Ok(was_stopped)
    }

    /// Whether the library that shifts clocks is loaded where it should be, and nowhere else, once it has run for long
    /// enough to have loaded it.
    pub(crate) async fn is_clock_right(&self) -> bool {
        let begin = Instant::now();
        while begin.elapsed() < RUNNING_PATIENCE {
            let Some(slot) = self.running().await else { return false };
            let loaded = slot.process.as_ref().is_some_and(|process| self.shared.shift.is_loaded(process.id()));
            if loaded == (slot.clock_minutes != 0) {
                return true;
            }
            drop(slot);
            sleep(LOOK_EVERY).await;
        }
        false
    }

    /// Its slot, once there is a process in it that has run for a moment. One whose servers are away ends at once, and
    /// to kill that would prove little.
    pub(super) async fn running(&self) -> Option<MutexGuard<'_, Slot>> {
        let begin = Instant::now();
        while begin.elapsed() < RUNNING_PATIENCE {
            let mut slot = self.slot.lock().await;
            let is_free = slot.taken == Taken::Free;
            let has_run = slot.started.is_some_and(|started| started.elapsed() >= MOMENT);
            // One that is stopped goes on first: killed before, it would not have been stopped past its lease.
            if has_run && is_free && slot.process.as_mut().is_some_and(|process| matches!(process.ended(), Ok(None))) {
                return Some(slot);
            }
            drop(slot);
            sleep(LOOK_EVERY).await;
        }
        None
    }

    /// Ends it in an orderly way, for good; its supervisor is gone by then.
    pub(crate) async fn end(&self) -> anyhow::Result<()> {
        let mut slot = self.slot.lock().await;
        if let Some(mut process) = slot.process.take() {
            process.stop(Signal::Interrupt, STOP_PATIENCE).await?;
        }
        slot.log.finish().await;
        Ok(())
    }

    /// How often it ended because it could not do its work.
    pub(crate) async fn ended_badly(&self) -> u64 {
        self.slot.lock().await.ended_badly
    }

    /// Starts it if it has ended. True where it is better to wait before the next look.
    async fn look(&self) -> anyhow::Result<bool> {
        let mut slot = self.slot.lock().await;
        let Some(process) = slot.process.as_mut() else {
            if slot.taken != Taken::Away {
                self.start(&mut slot)?;
            }
            return Ok(false);
        };
        let Some(status) = process.ended()? else { return Ok(false) };
        slot.process = None;
        // It was too late to start all of the file: those that it started are others' by now.
        if let (Some(3), Some(_)) = (status.code(), &slot.wave) {
            self.shared.waves.ended();
            slot.wave = None;
            slot.is_failing = false;
            return Ok(false);
        }
        // One needs a person, zero does not; both say that every order of the file has come to rest.
        if let (Some(0 | 1), Some((_, call))) = (status.code(), &slot.wave) {
            self.shared.diary.enter(self.key.number(), Happened::Answered { call: *call });
            self.shared.waves.ended();
            slot.wave = None;
            slot.is_failing = false;
            return Ok(false);
        }
        slot.ended_badly += 1;
        // While its servers are away it ends again and again, which is said once.
        let ran = slot.started.map_or(Duration::ZERO, |started| started.elapsed());
        if !slot.is_failing || ran > LONG_RUN {
            self.shared
                .diary
                .say(format_args!("{} ended with {status}, and is started until it runs", self.key.name()));
        }
        slot.is_failing = true;
        Ok(true)
    }

    pub(super) fn start(&self, slot: &mut Slot) -> anyhow::Result<()> {
        let Shared { folder, programs, urls, times, products, waves, diary, shift, .. } = &*self.shared;
        if slot.wave.is_none() && self.key.role == Role::Orders {
            let wave = if self.key == ReplicaKey::RUSH { waves.take_rush()? } else { waves.take()? };
            slot.wave = wave.map(|wave| (wave, 0));
            if self.key == ReplicaKey::RUSH && slot.wave.is_none() {
                return Ok(());
            }
        }
        let (lease, answer, calls) = (seconds(times.lease), seconds(times.reply_timeout), times.calls.to_string());
        let mut args = vec!["service", self.key.role.name(), "--store", &urls.store, "--transport", &urls.transport];
        args.extend(["--outside", &urls.outside, "--lease", &lease, "--answer-within", &answer, "--calls", &calls]);
        // To kill one that only waits for its broker would prove little.
        args.extend(["--wait-for-broker", "1ms"]);
        let kept = times.retention.map(kept).unwrap_or_default();
        args.extend(kept.iter().map(String::as_str));
        let at_once = slot.wave.as_ref().and_then(|(wave, _)| wave.at_once);
        let concurrency = at_once.map_or(times.concurrency.to_string(), |at_once| at_once.to_string());
        let products = products.to_string_lossy();
        let (file, within);
        if let Some((wave, call)) = &mut slot.wave {
            *call = diary.next_call();
            diary.enter(self.key.number(), Happened::Started { call: *call, wave: wave.number });
            file = wave.file.to_string_lossy().into_owned();
            if let Some(left) = waves.time_to_start(wave.number) {
                within = seconds(left);
                args.extend(["--start-within", &within]);
            }
            args.extend(["--orders", &file, "--products", &products, "--concurrency", &concurrency, "--json"]);
        }
        let mut command = programs.replica(folder, &args);
        command.stdin(Stdio::null()).envs(urls.environment.iter().cloned());
        slot.log.prepare(&mut command)?;
        if slot.clock_minutes != 0 {
            command.envs(shift.environment(slot.clock_minutes));
        }
        let mut process = ProcessGroup::spawn(command, Signal::Kill)?;
        slot.log.attach(&mut process)?;
        slot.process = Some(process);
        slot.started = Some(Instant::now());
        Ok(())
    }
}

fn seconds(time: Duration) -> String {
    format!("{}ms", time.as_millis())
}

/// What a replica is told about retention.
fn kept(times: RetentionTimes) -> Vec<String> {
    let options = [
        ("--keep", times.full),
        ("--keep-keys", times.keys),
        ("--keep-ids", times.message_ids),
        ("--clock-skew", times.clock_skew_max),
        ("--purge-retry", times.purge_retry),
    ];
    options.into_iter().flat_map(|(name, time)| [name.to_owned(), seconds(time)]).collect()
}
