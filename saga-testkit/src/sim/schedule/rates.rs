use super::random::Random;

/// How often, in a thousand, each thing happens in one schedule. The seed picks them, so that one schedule is calm but for
/// one kind of fault, and another has all of them at once (swarm testing).
#[derive(Debug, Clone, Default)]
pub struct Rates {
    /// A commit fails for certain.
    pub commit_fails: u32,
    /// A commit loses against another transaction.
    pub commit_conflicts: u32,
    /// A commit is unknown to its caller.
    pub commit_unknown: u32,
    /// The process is crashed at a boundary of the store.
    pub commit_crashes: u32,
    /// A call of the store takes long.
    pub store_slow: u32,
    /// A read of the store fails.
    pub read_fails: u32,
    /// A step function panics.
    pub panics: u32,
    /// A step function returns an error.
    pub fails: u32,
    /// A step function passes its time limit.
    pub hangs: u32,
    /// A step function takes a while.
    pub slow: u32,
    /// A step rejects now, and might not the next time.
    pub rejects: u32,
    /// A compensation rejects.
    pub undo_rejects: u32,
    /// A call cannot be sent.
    pub not_sent: u32,
    /// The answer to a call is lost.
    pub answer_lost: u32,
    /// A call arrives late.
    pub arrives_late: u32,
    /// Transactions write common rows.
    pub hot_rows: u32,
    /// A message cannot be published.
    pub publish_fails: u32,
    /// The confirmation of a message is lost.
    pub confirm_lost: u32,
    /// A message is refused.
    pub publish_refused: u32,
    /// A client drops the future of its call.
    pub client_drops: u32,
    /// A client cancels the saga that it started.
    pub client_cancels: u32,
    /// A person pauses a saga that was started, and lets it go on later.
    pub person_pauses: u32,
    /// A person has tried at once what waits for its next attempt.
    pub person_hurries: u32,
    /// A message between services is accepted and lost.
    pub message_lost: u32,
    /// A message between services comes twice.
    pub message_doubled: u32,
    /// A message between services comes late.
    pub message_delayed: u32,
    /// A receiver loses its connection.
    pub receive_fails: u32,
    /// What a receiver says of its messages is not heard.
    pub settle_lost: u32,
    /// A host begins that does not know all steps of its service yet.
    pub ignorant: u32,
    /// A saga is moved to another version.
    pub moves: u32,
    /// An operator restarts a saga that has ended. Drawn once for each saga.
    pub restarts: u32,
    /// A person acts on many sagas at once.
    pub person_bulk: u32,
    /// A call outside reports how far it is.
    pub reports: u32,
}

/// Sets the draws of what people do to many sagas, and to those that have ended, apart from all others.
const PERSONS_SEED: u64 = 0x0070_6572_736f_6e73;

impl Rates {
    /// Draws the rates of a schedule.
    pub fn draw(random: &mut Random, seed: u64) -> Self {
        let mut persons = Random::new(seed ^ PERSONS_SEED);
        let mut apart = |often: &[u32]| if persons.per_mille(250) { *persons.pick(often) } else { 0 };
        let (restarts, person_bulk) = (apart(&[200, 600]), apart(&[100, 400, 800]));
        let mut rate = |often: &[u32]| if random.per_mille(350) { *random.pick(often) } else { 0 };
        Self {
            commit_fails: rate(&[5, 20, 100]),
            commit_conflicts: rate(&[5, 20, 100]),
            commit_unknown: rate(&[5, 20, 80]),
            commit_crashes: rate(&[2, 5, 20]),
            store_slow: rate(&[5, 30, 200]),
            read_fails: rate(&[5, 20, 60]),
            panics: rate(&[10, 50, 150]),
            fails: rate(&[20, 100, 250]),
            hangs: rate(&[10, 40]),
            slow: rate(&[50, 300]),
            rejects: rate(&[10, 40, 100]),
            undo_rejects: rate(&[20, 100]),
            not_sent: rate(&[20, 100, 300, 700]),
            answer_lost: rate(&[20, 100, 300, 600]),
            arrives_late: rate(&[20, 100]),
            hot_rows: rate(&[200, 800]),
            publish_fails: rate(&[30, 200]),
            confirm_lost: rate(&[30, 200]),
            publish_refused: rate(&[10, 50]),
            client_drops: rate(&[50, 300]),
            message_lost: rate(&[20, 100, 300]),
            message_doubled: rate(&[100, 500, 1000]),
            message_delayed: rate(&[50, 300]),
            receive_fails: rate(&[30, 150]),
            settle_lost: rate(&[30, 200]),
            ignorant: rate(&[200, 700]),
            client_cancels: rate(&[50, 200, 500]),
            moves: rate(&[200, 500, 1000]),
            person_pauses: rate(&[100, 300, 700]),
            person_hurries: rate(&[100, 500]),
            restarts,
            person_bulk,
            reports: 0,
        }
    }

    /// Draws how often calls report. It has a draw of its own, so that the schedules are otherwise as without it.
    pub(crate) fn draw_reports(random: &mut Random) -> u32 {
        *random.pick(&[0, 300, 1000])
    }
}
