//! What befalls one replica beside SIGKILL and SIGSTOP.

use std::time::Duration;

use saga_servers::Traffic;
use tokio::time::sleep;

use super::replica::Taken;
use super::{Happened, LogState, Replica};

impl Replica {
    /// For so long its connections to PostgreSQL hang, and so do those that it makes meanwhile.
    pub(crate) async fn cut_off(&self, time: Duration, traffic: Traffic) {
        self.shared.way.set_traffic(traffic);
        self.shared.diary.enter(self.key.number(), Happened::CutOff);
        sleep(time).await;
        self.shared.way.set_traffic(Traffic::Flows);
        self.shared.diary.enter(self.key.number(), Happened::Reconnected);
    }

    /// No other fault kills or stops it until it is released. False where it does not run.
    pub(crate) async fn hold(&self) -> bool {
        let Some(mut slot) = self.running().await else { return false };
        slot.taken = Taken::Held;
        true
    }

    /// It may be killed and stopped again.
    pub(crate) async fn release(&self) {
        self.slot.lock().await.taken = Taken::Free;
    }

    /// Its standard error is no longer read, and it is given something to write there.
    pub(crate) async fn close_log(&self) {
        self.slot.lock().await.log.close().await;
        self.shared.way.cut_all();
    }

    /// SIGKILL; the process that is started instead writes its log to there.
    pub(crate) async fn restart_with_log(&self, state: LogState) -> anyhow::Result<()> {
        let mut slot = self.slot.lock().await;
        slot.log.set(state);
        if let Some(mut process) = slot.process.take() {
            process.kill().await?;
            self.shared.diary.enter(self.key.number(), Happened::Killed);
        }
        self.start(&mut slot)
    }

    /// SIGKILL, and it is not started again until it is called back. False where it does not run.
    pub(crate) async fn send_away(&self) -> anyhow::Result<bool> {
        let Some(mut slot) = self.running().await else { return Ok(false) };
        slot.taken = Taken::Away;
        if let Some(mut process) = slot.process.take() {
            process.kill().await?;
            self.shared.diary.enter(self.key.number(), Happened::Killed);
        }
        Ok(true)
    }

    /// It is started again.
    pub(crate) async fn call_back(&self) {
        self.slot.lock().await.taken = Taken::Free;
    }
}
