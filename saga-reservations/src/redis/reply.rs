//! What the scripts answer.

use saga_core::store::Timestamp;

use crate::book::{FencingToken, Line, Reservation, ReservationKey, Resource, ResourceName, State};

/// What a script did.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Word {
    /// It did what was asked.
    Done,
    /// It did what was asked, and SQL has nothing of the key.
    Fresh,
    /// The hold does not allow it. The book says why.
    Known,
    /// Redis has no such hold.
    None,
    /// The hold is being confirmed.
    Confirming,
    /// A resource must be read from SQL first.
    Load,
    /// There are not enough units, as far as Redis knows.
    Short,
    /// As [`Short`](Self::Short), and some holds are being confirmed, whose units may be counted twice.
    Marked,
    /// So many holds are over that not all were ended yet.
    Again,
}

/// An answer about holds and resources.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Reply {
    pub(super) word: Word,
    pub(super) now: Timestamp,
    /// Those that were asked for and are known. Their last tokens are not here.
    pub(super) resources: Vec<Resource>,
    pub(super) hold: Option<Hold>,
    /// The token of a fresh hold. The rest is as it was asked for.
    pub(super) fresh: Option<FencingToken>,
}

/// A hold in Redis.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Hold {
    /// One that is being confirmed is held.
    pub(super) reservation: Reservation,
    pub(super) is_confirming: bool,
    /// The token of a late confirmation.
    next_token: Option<FencingToken>,
}

impl Hold {
    /// The reservation that a confirmation is to write.
    pub(super) fn to_confirm(&self) -> Reservation {
        let token = self.next_token.unwrap_or(self.reservation.token);
        Reservation { token, ..self.reservation.clone() }
    }
}

impl Reply {
    /// Reads the words of an answer about this key. `None` if it is none of this version.
    pub(super) fn read(words: &[String], key: Option<&ReservationKey>) -> Option<Self> {
        let word = match words.first()?.as_str() {
            "done" => Word::Done,
            "known" => Word::Known,
            "none" => Word::None,
            "confirming" => Word::Confirming,
            "load" => Word::Load,
            "short" => Word::Short,
            "marked" => Word::Marked,
            "again" => Word::Again,
            _ => return None,
        };
        let now = Timestamp(words.get(1)?.parse().ok()?);
        let count: usize = words.get(2)?.parse().ok()?;
        let rest = words.get(3 + 5 * count..)?;
        let resources = words[3..].chunks_exact(5).take(count).map(resource).collect::<Option<_>>()?;
        let hold = if rest.is_empty() { None } else { Some(hold(rest, key?)?) };
        Some(Self { word, now, resources, hold, fresh: None })
    }

    /// Reads the answers to requests about these keys. `None` if one is none of this version.
    pub(super) fn read_all<'a>(
        words: &[String],
        keys: impl IntoIterator<Item = &'a ReservationKey>,
    ) -> Option<Vec<Self>> {
        let [_, now, rest @ ..] = words else { return None };
        let (now, mut rest) = (Timestamp(now.parse().ok()?), rest);
        let mut next = |key| {
            let (count, behind) = rest.split_first()?;
            let (words, behind) = behind.split_at_checked(count.parse().ok()?)?;
            rest = behind;
            match words {
                [word, token] if word == "fresh" => {
                    let fresh = Some(FencingToken(token.parse().ok()?));
                    Some(Self { word: Word::Fresh, now, resources: Vec::new(), hold: None, fresh })
                }
                words => Self::read(words, Some(key)),
            }
        };
        keys.into_iter().map(&mut next).collect()
    }
}

fn resource(words: &[String]) -> Option<Resource> {
    let [name, capacity, confirmed, held, is_unique] = words else { return None };
    let mut resource = Resource::new(ResourceName::new(name.as_str()).ok()?, capacity.parse().ok()?, is_unique == "1");
    resource.confirmed = confirmed.parse().ok()?;
    resource.held = held.parse().ok()?;
    Some(resource)
}

fn hold(words: &[String], key: &ReservationKey) -> Option<Hold> {
    let [state, token, next_token, expires_at, changed_at, is_unique, lines @ ..] = words else { return None };
    let (state, is_confirming) = match state.as_str() {
        "held" => (State::Held, false),
        "confirming" => (State::Held, true),
        "released" => (State::Released, false),
        "expired" => (State::Expired, false),
        _ => return None,
    };
    let line = |words: &[String]| {
        let [resource, quantity] = words else { return None };
        Some(Line { resource: ResourceName::new(resource.as_str()).ok()?, quantity: quantity.parse().ok()? })
    };
    let token = FencingToken(token.parse().ok()?);
    let reservation = Reservation {
        key: key.clone(),
        lines: lines.chunks(2).map(line).collect::<Option<_>>()?,
        is_unique: is_unique == "1",
        state,
        token,
        first_token: token,
        expires_at: Timestamp(expires_at.parse().ok()?),
        changed_at: Timestamp(changed_at.parse().ok()?),
    };
    let next_token = Some(FencingToken(next_token.parse().ok()?)).filter(|next| next.0 != 0);
    Some(Hold { reservation, is_confirming, next_token })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn read(words: &[&str]) -> Option<Reply> {
        let key = ReservationKey::new("a").unwrap();
        Reply::read(&words.iter().map(ToString::to_string).collect::<Vec<_>>(), Some(&key))
    }

    #[test]
    fn answers_are_read() {
        let short = read(&["short", "7", "1", "seat", "5", "1", "3", "0"]).unwrap();
        assert_eq!((short.word, short.resources[0].free(), short.hold), (Word::Short, 1, None));
        let words = ["done", "7", "0", "confirming", "9", "12", "8", "7", "1", "bag", "1", "seat", "2"];
        let hold = read(&words).unwrap().hold.unwrap();
        assert!(hold.is_confirming && hold.reservation.is_unique && hold.reservation.lines.len() == 2);
        let to_confirm = hold.to_confirm();
        assert_eq!((to_confirm.token, to_confirm.first_token), (FencingToken(12), FencingToken(9)));
        assert_eq!(read(&["later", "7", "0"]), None);
        assert_eq!(read(&["done", "7", "1", "seat"]), None);
    }

    #[test]
    fn answers_to_several_requests_are_read() {
        let keys = ["a", "b", "c"].map(|key| ReservationKey::new(key).unwrap());
        let read = |words: &str| Reply::read_all(&words.split(' ').map(ToOwned::to_owned).collect::<Vec<_>>(), &keys);
        let replies = read("done 7 2 fresh 9 8 short 7 1 seat 5 1 3 0 9 known 7 0 held 4 0 12 8 0").unwrap();
        assert_eq!(replies.iter().map(|reply| reply.word).collect::<Vec<_>>(), [Word::Fresh, Word::Short, Word::Known]);
        assert_eq!((replies[0].fresh, replies[0].now), (Some(FencingToken(9)), Timestamp(7)));
        assert_eq!(replies[1].resources[0].free(), 1);
        let known = replies[2].hold.as_ref().unwrap();
        assert_eq!((&known.reservation.key, known.reservation.token), (&keys[2], FencingToken(4)));
        for wrong in ["done", "done 7", "done 7 2 fresh 9", "done 7 2 fresh 9 2 fresh 9 3 fresh 9", "done 7 1 fresh 9"]
        {
            assert_eq!(read(wrong), None);
        }
    }
}
