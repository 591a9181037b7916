//! The executor of the simulation: one seed, one schedule; crashes, stops and time.

use std::sync::atomic::{AtomicU32, Ordering};
use std::sync::{Arc, Mutex};
use std::time::Duration;

use saga_core::env::{BoxFuture, Environment};
use saga_testkit::sim::executor::{Control, Executor, Finish, Limits, ProcessId, SimEnvironment};

const LIMITS: Limits = Limits { polls: 100_000, polls_without_time: 10_000, time: Duration::from_hours(1) };

/// Three processes of two tasks each, which write down their turns; answers the finish, what was written, and the trace.
fn turns(seed: u64) -> (Finish, Vec<(u16, u8)>, u64) {
    let mut executor = Executor::new(seed, Duration::from_micros(3));
    let control = executor.control();
    let written = Arc::new(Mutex::new(Vec::new()));
    let pad = Arc::clone(&written);
    let world = executor.world();
    let main = async move {
        for _ in 0..3 {
            let process = control.process(Duration::ZERO);
            for task in 0..2 {
                let (pad, env) = (Arc::clone(&pad), process.clone());
                process.spawn(Box::pin(async move {
                    for _ in 0..5 {
                        env.sleep(Duration::from_micros(env.random() % 10)).await;
                        pad.lock().unwrap().push((env.process().index(), task));
                    }
                }));
            }
        }
        world.sleep(Duration::from_secs(1)).await;
    };
    let finish = executor.run(Box::pin(main), LIMITS);
    let written = written.lock().unwrap().clone();
    (finish, written, executor.trace())
}

#[test]
fn one_seed_gives_one_schedule_and_another_seed_another() {
    for seed in 0..50 {
        let first = turns(seed);
        assert_eq!(first.0, Finish::Done, "seed {seed}");
        assert_eq!(first.1.len(), 30, "seed {seed}");
        assert_eq!(first, turns(seed), "seed {seed}");
        assert_ne!(first.2, turns(seed + 1).2, "seed {seed}");
    }
}

/// Runs a counting process for a minute beside a task of the world that may disturb it.
fn counted_in_a_minute(
    disturb: impl FnOnce(Control, SimEnvironment, ProcessId) -> BoxFuture<'static, ()>,
) -> (u32, bool) {
    let mut executor = Executor::new(1, Duration::ZERO);
    let control = executor.control();
    let process = control.process(Duration::ZERO);
    let counted = Arc::new(AtomicU32::new(0));
    let dropped = Arc::new(AtomicU32::new(0));
    let (counting, env, guard) = (Arc::clone(&counted), process.clone(), Dropped(Arc::clone(&dropped)));
    process.spawn(Box::pin(async move {
        let _guard = guard;
        loop {
            env.sleep(Duration::from_secs(1)).await;
            counting.fetch_add(1, Ordering::Relaxed);
        }
    }));
    let world = executor.world();
    world.spawn(disturb(control, executor.world(), process.process()));
    let is_dropped = Arc::clone(&dropped);
    let seen = Arc::new(AtomicU32::new(0));
    let seen_too = Arc::clone(&seen);
    let main = Box::pin(async move {
        world.sleep(Duration::from_millis(60_500)).await;
        seen_too.store(is_dropped.load(Ordering::Relaxed), Ordering::Relaxed);
    });
    assert_eq!(executor.run(main, LIMITS), Finish::Done);
    (counted.load(Ordering::Relaxed), seen.load(Ordering::Relaxed) > 0)
}

struct Dropped(Arc<AtomicU32>);

impl Drop for Dropped {
    fn drop(&mut self) {
        self.0.fetch_add(1, Ordering::Relaxed);
    }
}

#[test]
fn time_jumps_to_the_next_timer() {
    assert_eq!(counted_in_a_minute(|_, _, _| Box::pin(async {})), (60, false));
}

#[test]
fn a_crash_drops_the_tasks_of_the_process() {
    let crashed = counted_in_a_minute(|control, world, process| {
        Box::pin(async move {
            world.sleep(Duration::from_millis(10_500)).await;
            control.kill(process);
            control.died(process).await;
            assert!(control.is_dead(process));
        })
    });
    assert_eq!(crashed, (10, true));
}

#[test]
fn a_crash_can_wait_for_a_poll() {
    // The first poll is the beginning, and each further one counts.
    let crashed = counted_in_a_minute(|control, _, process| {
        control.kill_after(process, 5);
        Box::pin(async {})
    });
    assert_eq!(crashed, (3, true));
}

#[test]
fn a_stopped_process_is_not_polled_and_goes_on_where_it_was() {
    let stopped = counted_in_a_minute(|control, world, process| {
        Box::pin(async move {
            world.sleep(Duration::from_millis(10_500)).await;
            control.pause(process);
            world.sleep(Duration::from_secs(30)).await;
            control.resume(process);
        })
    });
    // 10 before, one at 40.5 that was due at 11, then 20 more.
    assert_eq!(stopped, (30, false));
}

#[test]
fn who_waits_for_nothing_is_a_deadlock_and_who_wakes_itself_without_end_a_livelock() {
    let mut executor = Executor::new(3, Duration::ZERO);
    assert_eq!(executor.run(Box::pin(std::future::pending()), LIMITS), Finish::Deadlock);
    let spin = std::future::poll_fn(|cx| {
        cx.waker().wake_by_ref();
        std::task::Poll::<()>::Pending
    });
    assert_eq!(Executor::new(3, Duration::ZERO).run(Box::pin(spin), LIMITS), Finish::Livelock);
    let mut executor = Executor::new(3, Duration::ZERO);
    let long = executor.world().sleep(LIMITS.time * 2);
    assert_eq!(executor.run(long, LIMITS), Finish::TimeUp);
}

#[test]
fn a_panic_ends_its_task_only_and_is_noted() {
    let mut executor = Executor::new(3, Duration::ZERO);
    let world = executor.world();
    world.spawn(Box::pin(async { std::panic::resume_unwind(Box::new("broken")) }));
    let main = world.sleep(Duration::from_secs(1));
    assert_eq!(executor.run(main, LIMITS), Finish::Done);
    assert_eq!(executor.panics()[0].message, "broken");
}
