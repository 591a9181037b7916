//! What is done to the processes and to the store.

use std::sync::Arc;
use std::time::Duration;

use saga_core::env::Environment;

use super::fault::Fault;
use super::replica::{LEASE, MEMBER, Replica};
use super::world::World;
use crate::checker::What;
use crate::sim::schedule::Disruption;

/// How long a planned crash waits for its poll: a process that is idle does not reach it.
const CRASH_WITHIN: Duration = Duration::from_secs(2);

/// Disrupts the processes or a store at that moment.
pub(crate) async fn disrupt(world: Arc<World>, replicas: Vec<Arc<Replica>>, moment: Duration, disruption: Disruption) {
    world.env.sleep(moment).await;
    let of = |replica: u64| Arc::clone(&replicas[replica as usize]);
    match disruption {
        Disruption::Crash { replica, polls } => crash(&world, &of(replica), polls).await,
        Disruption::Pause { replica, duration } => pause(&world, &of(replica), duration).await,
        Disruption::CutOff { replica, duration } => cut_off(&world, &of(replica), duration).await,
        Disruption::Drain { replica } => drain(&world, &of(replica)).await,
        Disruption::StoreDown { service, duration } => {
            world.take_store_down(service, duration);
            world.env.sleep(duration).await;
        }
    }
}

async fn crash(world: &World, replica: &Replica, polls: u64) {
    let Some(live) = replica.live() else { return };
    let process = live.env.process();
    world.control.kill_after(process, polls);
    tokio::select! {
        biased;
        () = world.control.died(process) => world.hit(Fault::CrashAtPoll),
        () = world.env.sleep(CRASH_WITHIN) => world.control.spare(process),
    }
}

async fn pause(world: &World, replica: &Replica, duration: Duration) {
    let Some(live) = replica.live() else { return };
    let process = live.env.process();
    world.control.pause(process);
    world.enter(What::Paused);
    world.env.sleep(duration).await;
    world.control.resume(process);
    world.enter(What::Resumed);
    if duration > LEASE {
        world.hit(Fault::PausedPastLease);
    }
}

async fn cut_off(world: &World, replica: &Replica, duration: Duration) {
    let Some(live) = replica.live() else { return };
    let process = live.env.process();
    world.set_cut_off(process, true);
    world.enter(What::CutOff);
    world.env.sleep(duration).await;
    world.set_cut_off(process, false);
    world.enter(What::Reconnected);
    world.hit(if duration < MEMBER { Fault::CutOffBriefly } else { Fault::CutOffLong });
}

async fn drain(world: &World, replica: &Replica) {
    let Some(live) = replica.live() else { return };
    let process = live.env.process();
    let is_drained = live.ask(|runtime| Box::pin(async move { runtime.shutdown().await })).await.is_some();
    if is_drained {
        world.recorder.enter(process, What::ShutDown);
        world.hit(Fault::Drained);
        // It stays for a while, so that whatever it still does is seen.
        world.wait_up_to(LEASE).await;
    }
    world.control.kill(process);
}
