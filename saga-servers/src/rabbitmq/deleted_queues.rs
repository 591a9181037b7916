//! Keeps a broker working whose queues are deleted at any moment.

use crate::error::Error;
use crate::rabbitmq::rabbitmq::RabbitMqServer;

/// Tells the supervisor of dead lettering not to start its processes again. It has no call for that, so its state is changed, in which the
/// fourth part is what it knows of its children.
const START_NONE_AGAIN: &str = "sys:replace_state(rabbit_fifo_dlx_sup, fun(State) -> \
     Once = fun(_, Child) -> list_to_tuple([case Part of permanent -> temporary; _ -> Part end || Part <- tuple_to_list(Child)]) end, \
     {Ids, Children} = element(4, State), \
     setelement(4, State, {Ids, maps:map(Once, Children)}) \
 end).";

impl RabbitMqServer {
    /// From now on a deleted queue harms no other, until the broker is started again. It takes some seconds.
    ///
    /// RabbitMQ 3.10 has a process for each quorum queue that dead-letters at least once. If a queue is deleted in the moment in which it
    /// gets a leader, its process crashes, is started again, finds no queue and crashes again. Then the supervisor of all these
    /// processes gives up, and from then on no such queue of the broker gets a leader: who declares one waits without end.
    ///
    /// # Errors
    /// The broker does not run, or is not built as this expects.
    ///
    /// # Cancel safety
    /// Dropped, it may be done or not.
    pub async fn survive_deleted_queues(&self) -> Result<(), Error> {
        self.control(&["eval", START_NONE_AGAIN]).await.map(drop)
    }
}
