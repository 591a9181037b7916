//! Where a connection is cut, and the bookkeeping of one connection's bytes.

/// Which way bytes go.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Direction {
    /// From the client to the server.
    ToServer,
    /// From the server to the client.
    ToClient,
}

/// Where a connection is cut.
///
/// ```
/// use saga_servers::{Cut, Direction};
///
/// // The server commits and answers, and the client never hears of it.
/// let doubt = Cut::after(Direction::ToClient, 0).seeing(Direction::ToServer, b"COMMIT");
/// # let _ = doubt;
/// ```
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Cut {
    pub(super) direction: Direction,
    pub(super) bytes: u64,
    pub(super) trigger: Option<(Direction, Vec<u8>)>,
}

impl Cut {
    /// After exactly `bytes` more bytes went in `direction`, counted on the connection that carries the first of them.
    pub fn after(direction: Direction, bytes: u64) -> Self {
        Self { direction, bytes, trigger: None }
    }

    /// Counts only once these bytes have gone by in `direction`, and on that connection. What is counted begins behind
    /// their last byte. They are looked for from the moment the cut is armed.
    #[must_use]
    pub fn seeing(mut self, direction: Direction, bytes: &[u8]) -> Self {
        self.trigger = (!bytes.is_empty()).then(|| (direction, bytes.to_vec()));
        self
    }
}

/// What becomes of a piece of bytes.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Fate {
    Pass,
    /// Only so many pass, and then the connection is cut.
    CutAfter(usize),
}

/// What one connection knows of cuts.
#[derive(Debug, Default)]
pub(super) struct Meter {
    /// The direction that is counted on this connection, and what is left.
    counting: Option<(Direction, u64)>,
    /// The last bytes of each direction: what is looked for may begin in one piece and end in the next.
    tails: [Vec<u8>; 2],
    /// Which way the last bytes went.
    last: Option<Direction>,
}

impl Meter {
    /// Says whether bytes in this direction are the beginning of a round trip.
    pub(super) fn begins_round_trip(&mut self, direction: Direction) -> bool {
        let before = self.last.replace(direction);
        direction == Direction::ToServer && before != Some(Direction::ToServer)
    }

    /// Says what becomes of `piece`, and takes `armed` over if it is this connection's.
    pub(super) fn judge(&mut self, direction: Direction, piece: &[u8], armed: &mut Option<Cut>) -> Fate {
        let mut begin = 0;
        if self.counting.is_none()
            && let Some(counted_from) = armed.as_ref().and_then(|cut| self.triggered(cut, direction, piece))
        {
            self.counting = armed.take().map(|cut| (cut.direction, cut.bytes));
            begin = counted_from;
        }
        self.remember(direction, piece);
        match &mut self.counting {
            Some((counted, left)) if *counted == direction => {
                let here = (piece.len() - begin) as u64;
                if here >= *left {
                    return Fate::CutAfter(begin + *left as usize);
                }
                *left -= here;
                Fate::Pass
            }
            _ => Fate::Pass,
        }
    }

    /// From which byte of `piece` on the cut counts, if it begins here.
    fn triggered(&self, cut: &Cut, direction: Direction, piece: &[u8]) -> Option<usize> {
        let Some((trigger, sought)) = &cut.trigger else {
            return (cut.direction == direction).then_some(0);
        };
        if *trigger != direction {
            return None;
        }
        let tail = &self.tails[direction as usize];
        let kept = tail.len().min(sought.len() - 1);
        let text = [&tail[tail.len() - kept..], piece].concat();
        let at = text.windows(sought.len()).position(|window| window == sought)?;
        // Counted in the other direction, nothing of this piece counts; the beginning is not looked at.
        Some(at + sought.len() - kept)
    }

    fn remember(&mut self, direction: Direction, piece: &[u8]) {
        const TAIL_BYTES: usize = 256;
        let tail = &mut self.tails[direction as usize];
        tail.extend_from_slice(&piece[piece.len().saturating_sub(TAIL_BYTES)..]);
        let surplus = tail.len().saturating_sub(TAIL_BYTES);
        tail.drain(..surplus);
    }
}

#[cfg(test)]
mod tests {
    use super::Direction::{ToClient, ToServer};
    use super::{Cut, Fate, Meter};

    #[test]
    fn bytes_are_counted_over_pieces() {
        let mut meter = Meter::default();
        let mut armed = Some(Cut::after(ToServer, 5));
        assert_eq!(meter.judge(ToClient, b"hello", &mut armed), Fate::Pass);
        assert!(armed.is_some(), "the other direction is not counted");
        assert_eq!(meter.judge(ToServer, b"abc", &mut armed), Fate::Pass);
        assert!(armed.is_none(), "a cut is for one connection");
        assert_eq!(meter.judge(ToServer, b"defg", &mut armed), Fate::CutAfter(2));
    }

    #[test]
    fn counting_begins_behind_what_is_looked_for() {
        let mut meter = Meter::default();
        let mut armed = Some(Cut::after(ToServer, 1).seeing(ToServer, b"COMMIT"));
        assert_eq!(meter.judge(ToServer, b"BEGIN COM", &mut armed), Fate::Pass);
        assert_eq!(meter.judge(ToServer, b"MIT; more", &mut armed), Fate::CutAfter(4));
    }

    #[test]
    fn what_is_said_on_end_is_one_round_trip() {
        let mut meter = Meter::default();
        let said = [ToServer, ToServer, ToClient, ToClient, ToServer, ToClient, ToServer];
        let begun = said.map(|direction| meter.begins_round_trip(direction));
        assert_eq!(begun, [true, false, false, false, true, false, true]);
    }

    #[test]
    fn what_went_by_before_the_cut_was_armed_still_begins_a_match_only_at_its_end() {
        let mut meter = Meter::default();
        assert_eq!(meter.judge(ToServer, b"COMMIT", &mut None), Fate::Pass);
        let mut armed = Some(Cut::after(ToServer, 0).seeing(ToServer, b"COMMIT"));
        assert_eq!(meter.judge(ToServer, b" again", &mut armed), Fate::Pass);
        assert!(armed.is_some());
    }

    #[test]
    fn the_answer_is_withheld() {
        let mut meter = Meter::default();
        let mut armed = Some(Cut::after(ToClient, 0).seeing(ToServer, b"COMMIT"));
        assert_eq!(meter.judge(ToServer, b"COMMIT", &mut armed), Fate::Pass, "the server gets the whole question");
        assert_eq!(meter.judge(ToClient, b"COMMIT done", &mut armed), Fate::CutAfter(0));
    }
}
