use std::time::Duration;

use anyhow::ensure;
use saga_servers::PostgresServer;
use tokio::time::{sleep, timeout};

use super::injector::LOOK_EVERY;
use super::{Count, Injector};

/// How PostgreSQL's log says that it had no room: for a table, and for what it writes when a database is first opened after a
/// restart.
const NO_ROOM: [&str; 2] = ["No space left on device", "could not write init file"];
/// How long it may take until something needs more room than its tables have.
const PATIENCE: Duration = Duration::from_mins(1);
/// More free space than there is, so that the broker counts its disk as full.
const UNREACHABLE: &str = "1000000GB";
/// What the broker is started with.
const USUAL: &str = "50MB";

impl Injector<'_> {
    /// The file system of the tables takes no more for so long, from when PostgreSQL first notices. False where it never does.
    pub(super) async fn fill_tables(&self, time: Duration) -> anyhow::Result<bool> {
        let own = self.own()?;
        let disk = match &*own.disk {
            Ok(disk) => disk,
            Err(why) => {
                self.counts.add(Count::FullDisksLeftOut);
                self.diary.say(format_args!("LEFT OUT, there is room for tables: {why:#}"));
                return Ok(true);
            }
        };
        // Held to the end, so that no other fault kills the server meanwhile: it cannot start without room.
        let server = own.postgres.lock().await;
        let before = complaints(&server)?;
        disk.fill().await?;
        let noticed = timeout(PATIENCE, async {
            while complaints(&server)? == before {
                sleep(LOOK_EVERY).await;
            }
            sleep(time).await;
            complaints(&server)
        });
        let noticed = noticed.await;
        disk.make_room().await?;
        let Ok(noticed) = noticed else {
            self.diary.say("there is room for tables again: nothing needed more");
            return Ok(false);
        };
        let refused = noticed? - before;
        self.counts.add(Count::FullTables);
        self.diary.say(format_args!("there is room for tables again, PostgreSQL lacked it {refused} times"));
        Ok(true)
    }

    /// The broker finds too little room on its disk.
    pub(super) async fn fill_broker_disk(&self, time: Duration) -> anyhow::Result<()> {
        // Held to the end, so that no other fault kills the broker meanwhile: it comes back without an alarm.
        let broker = self.own()?.broker.lock().await;
        // One call: each takes seconds, and meanwhile nothing is sent.
        let limit = |limit| format!("rabbit_disk_monitor:set_disk_free_limit(\"{limit}\")");
        let (full, usual, millis) = (limit(UNREACHABLE), limit(USUAL), time.as_millis());
        let alarm = format!("{full}, Alarms = rabbit_alarm:get_alarms(), timer:sleep({millis}), {usual}, Alarms.");
        let alarms = broker.rabbitmq()?.control(&["eval", &alarm]).await?;
        ensure!(alarms.contains("disk"), "the broker raised no alarm for its disk, but {alarms}");
        self.counts.add(Count::FullBrokerDisks);
        self.diary.say("the broker's disk has room again");
        Ok(())
    }
}

fn complaints(server: &PostgresServer) -> anyhow::Result<usize> {
    let log = server.log()?;
    Ok(NO_ROOM.iter().map(|words| log.matches(words).count()).sum())
}
