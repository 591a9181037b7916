use std::fs::OpenOptions;
use std::path::PathBuf;
use std::process::Stdio;
use std::sync::Arc;
use std::time::Duration;

use saga_servers::{ProcessGroup, Signal};
use tokio::sync::{Mutex, MutexGuard};
use tokio::time::{Instant, sleep};

use super::waves::Wave;
use super::{ClockShift, Diary, Happened, Programs, Waves};
use crate::plan::Role;

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
    pub(crate) answer_within: Duration,
    pub(crate) concurrency: usize,
}

/// A process that is started again whenever it ends.
#[derive(Debug, Clone)]
pub(crate) struct Replica {
    pub(crate) key: ReplicaKey,
    slot: Arc<Mutex<Slot>>,
    shared: Arc<Shared>,
}

#[derive(Debug)]
struct Shared {
    folder: PathBuf,
    programs: Programs,
    urls: Urls,
    times: Times,
    products: PathBuf,
    waves: Arc<Waves>,
    diary: Arc<Diary>,
    shift: ClockShift,
}

/// Where a replica finds everything, behind the proxies.
#[derive(Debug, Clone)]
struct Urls {
    store: String,
    transport: String,
    outside: String,
}

#[derive(Debug, Default)]
struct Slot {
    process: Option<ProcessGroup>,
    started: Option<Instant>,
    wave: Option<(Wave, u64)>,
    clock_minutes: i64,
    is_stopped: bool,
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
    pub(crate) outside: String,
    pub(crate) times: Times,
    pub(crate) products: PathBuf,
    pub(crate) waves: Arc<Waves>,
    pub(crate) diary: Arc<Diary>,
    pub(crate) shift: ClockShift,
}

impl Replica {
    pub(crate) fn new(key: ReplicaKey, setting: Setting) -> Self {
        let Setting { folder, programs, store, transport, outside, times, products, waves, diary, shift } = setting;
        let store = format!("{store}?application_name={}", key.name());
        let urls = Urls { store, transport, outside };
        let shared = Shared { folder, programs, urls, times, products, waves, diary, shift };
        Self { key, slot: Arc::default(), shared: Arc::new(shared) }
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

    /// SIGSTOP, and after that time SIGCONT. Nobody kills it meanwhile.
    pub(crate) async fn pause(&self, time: Duration) -> anyhow::Result<bool> {
        {
            let Some(mut slot) = self.running().await else { return Ok(false) };
            let Some(process) = slot.process.as_mut() else { return Ok(false) };
            process.signal(Signal::Stop)?;
            slot.is_stopped = true;
            self.shared.diary.enter(self.key.number(), Happened::Stopped);
        }
        sleep(time).await;
        let mut slot = self.slot.lock().await;
        let was_stopped = slot.is_stopped;
        slot.is_stopped = false;
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
    async fn running(&self) -> Option<MutexGuard<'_, Slot>> {
        let begin = Instant::now();
        while begin.elapsed() < RUNNING_PATIENCE {
            let mut slot = self.slot.lock().await;
            let has_run = slot.started.is_some_and(|started| started.elapsed() >= MOMENT);
            // One that is stopped goes on first: killed before, it would not have been stopped past its lease.
            if has_run
                && !slot.is_stopped
                && slot.process.as_mut().is_some_and(|process| matches!(process.ended(), Ok(None)))
            {
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
            self.start(&mut slot)?;
            return Ok(false);
        };
        let Some(status) = process.ended()? else { return Ok(false) };
        slot.process = None;
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

    fn start(&self, slot: &mut Slot) -> anyhow::Result<()> {
        let Shared { folder, programs, urls, times, products, waves, diary, shift } = &*self.shared;
        let (lease, answer) = (seconds(times.lease), seconds(times.answer_within));
        let mut args = vec!["service", self.key.role.name(), "--store", &urls.store, "--transport", &urls.transport];
        args.extend(["--outside", &urls.outside, "--lease", &lease, "--answer-within", &answer]);
        // To kill one that only waits for its broker would prove little.
        args.extend(["--wait-for-broker", "1ms"]);
        let concurrency = times.concurrency.to_string();
        let products = products.to_string_lossy();
        if slot.wave.is_none() && self.key.role == Role::Orders {
            slot.wave = waves.take()?.map(|wave| (wave, 0));
        }
        let file;
        if let Some((wave, call)) = &mut slot.wave {
            *call = diary.next_call();
            diary.enter(self.key.number(), Happened::Started { call: *call, wave: wave.number });
            file = wave.file.to_string_lossy().into_owned();
            args.extend(["--orders", &file, "--products", &products, "--concurrency", &concurrency, "--json"]);
        }
        let mut command = programs.replica(folder, &args);
        let log = OpenOptions::new().create(true).append(true).open(folder.join(format!("{}.log", self.key.name())))?;
        command.stdout(log.try_clone()?).stderr(log).stdin(Stdio::null());
        if slot.clock_minutes != 0 {
            command.envs(shift.environment(slot.clock_minutes));
        }
        slot.process = Some(ProcessGroup::spawn(command, Signal::Kill)?);
        slot.started = Some(Instant::now());
        Ok(())
    }
}

fn seconds(time: Duration) -> String {
    format!("{}ms", time.as_millis())
}
