use std::time::Duration;

use saga_servers::Traffic;

use super::{Count, Injector};
use crate::plan::{Heal, MEMBER_SILENCE};
use crate::world::Replica;

impl Injector<'_> {
    /// A replica does not reach PostgreSQL, while everything else goes on.
    pub(super) async fn partition(&self, replica: &Replica, time: Duration, heal: Heal) {
        let _busy = replica.busy.lock().await;
        let traffic = match heal {
            Heal::Delivers => Traffic::Stalls,
            Heal::Loses => Traffic::Vanishes,
        };
        replica.cut_off(time, traffic).await;
        self.counts.add(if time > MEMBER_SILENCE { Count::PartitionsLong } else { Count::PartitionsShort });
        self.diary.say(format_args!("{} reaches PostgreSQL again", replica.key.name()));
    }
}
