/// The keys of the two clients.
pub(super) const KEYS: usize = 2;
/// Which key each task is about: three requests, one of them repeated, two confirmations, and a release.
pub(super) const KEY_OF: [usize; 6] = [0, 0, 1, 0, 1, 1];
/// The first task that confirms.
pub(super) const FIRST_CONFIRMATION: usize = 3;
/// The task that releases.
pub(super) const RELEASE: usize = 5;

/// An epoch, and a count within it.
pub type Token = (u8, u8);

/// Whether each key is meant.
pub type Keys = [bool; KEYS];

/// A hold in Redis.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Hold {
    /// It may expire.
    Held(Token),
    /// SQL is asked to confirm it.
    Marked(Token),
}

/// What Redis was told by SQL: in which epoch, in which version, and whether the unit is confirmed.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub struct Known {
    /// The epoch.
    pub epoch: u8,
    /// The version of the resource.
    pub version: u8,
    /// Whether the unit is confirmed.
    pub is_confirmed: bool,
}

/// How far a server is with what it does for a client.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Task {
    /// It was not asked yet, or has just asked.
    Begins,
    /// It has read this in SQL, and tells Redis.
    Tells(Known),
    /// Redis has the hold, and SQL is asked for the key.
    Looks(Token),
    /// Redis marked the hold in this epoch.
    Commits(u8, Token),
    /// SQL has the confirmation.
    Moves(Token),
    /// Redis has noted the key in this epoch, and SQL is to bar it.
    Bars(u8),
    /// It is answered, or its server has crashed.
    Ended,
}

/// How far a server is with loading the keys of SQL.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Loader {
    /// It does not load.
    Idle,
    /// It has read these keys, while SQL had this epoch.
    Read(u8, Keys),
}

/// What may still happen.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub struct Left {
    /// How often Redis may lose everything.
    pub flushes: u8,
    /// How often a server may crash.
    pub crashes: u8,
}

/// Redis, SQL, the servers, and what clients were answered.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub struct World {
    /// The epoch that Redis has.
    pub redis_epoch: Option<u8>,
    /// The counter that Redis has.
    pub counter: u8,
    /// What Redis was told of the resource.
    pub known: Option<Known>,
    /// The holds of the keys.
    pub holds: [Option<Hold>; KEYS],
    /// The keys that Redis knows SQL has, or will have.
    pub noted: Keys,
    /// Whether these are all.
    pub is_loaded: bool,
    /// The epoch in SQL.
    pub epoch: u8,
    /// The version of the resource in SQL.
    pub version: u8,
    /// The confirmed reservations in SQL.
    pub confirmed: [Option<Token>; KEYS],
    /// The keys that are barred in SQL.
    pub barred: Keys,
    /// The servers that load, in some order: it does not matter which one is how far.
    pub loaders: [Loader; 2],
    /// Whether a client was told that it holds a key that SQL had, since Redis did not know it.
    pub was_unread: bool,
    /// The servers.
    pub tasks: [Task; KEY_OF.len()],
    /// The last token under which a client was told that it holds.
    pub told_held: [Option<Token>; KEYS],
    /// Which clients were told that they have confirmed.
    pub told_confirmed: [bool; KEYS],
    /// Whether Redis has lost something.
    pub was_flushed: bool,
    /// What may still happen.
    pub left: Left,
}

impl World {
    pub(super) fn new() -> Self {
        Self {
            redis_epoch: None,
            counter: 0,
            known: None,
            holds: [None; KEYS],
            noted: [false; KEYS],
            is_loaded: false,
            epoch: 0,
            version: 0,
            confirmed: [None; KEYS],
            barred: [false; KEYS],
            loaders: [Loader::Idle; 2],
            was_unread: false,
            tasks: [Task::Begins; KEY_OF.len()],
            told_held: [None; KEYS],
            told_confirmed: [false; KEYS],
            was_flushed: false,
            left: Left { flushes: 2, crashes: 1 },
        }
    }

    pub(super) fn is_confirmed(&self) -> bool {
        self.confirmed.iter().any(Option::is_some)
    }

    /// What a server reads in SQL.
    pub(super) fn read(&self) -> Known {
        Known { epoch: self.epoch, version: self.version, is_confirmed: self.is_confirmed() }
    }

    /// Whether SQL has something of a key.
    pub(super) fn is_in_sql(&self, key: usize) -> bool {
        self.confirmed[key].is_some() || self.barred[key]
    }

    /// Whether Redis has the epoch of SQL.
    pub(super) fn is_in_epoch(&self) -> bool {
        self.redis_epoch == Some(self.epoch)
    }
}
