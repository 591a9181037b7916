/// Where the effect of a step lies.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Place {
    /// In the coordinator's own database.
    Here,
    /// In the outside world, which the coordinator calls.
    Outside,
    /// In the database of another service.
    There,
}

/// How large a model is.
#[derive(Debug, Clone)]
pub struct Bounds {
    /// The steps of the saga.
    pub steps: Vec<Place>,
    /// Whether a message that was sent can be delivered for ever, in any order and as often as one likes. Otherwise the
    /// broker has copies, which are published, delivered, settled and lost one by one.
    pub is_sticky: bool,
    /// How many processes each service has.
    pub processes: usize,
    /// How often a call is tried.
    pub attempts: u32,
    /// How often a command is sent.
    pub sends: u8,
    /// What the clients start under one key.
    pub payloads: Vec<u8>,
    /// Whether, instead of the saga, a stranger asks a host for a step and takes it back at the same time.
    pub has_stranger: bool,
    /// Whether a transactional step sends an event of its success.
    pub has_events: bool,
    /// What may go wrong.
    pub faults: Faults,
}

/// How often something may go wrong.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Hash)]
pub struct Faults {
    /// A step rejects.
    pub rejections: u8,
    /// A step or an undo ends without a definite answer.
    pub errors: u8,
    /// A process crashes.
    pub crashes: u8,
    /// A lease ends while its owner is paused.
    pub pauses: u8,
    /// The broker loses a message.
    pub losses: u8,
    /// The broker has a message, and its sender or its receiver vanishes before it has said so: it comes again.
    pub repeats: u8,
    /// The broker does not take a message that is sent.
    pub refusals: u8,
    /// A command becomes a dead letter.
    pub letters: u8,
    /// A person acts on what is stuck, or on a dead letter.
    pub actions: u8,
}

impl Bounds {
    /// Nothing goes wrong.
    fn quiet(steps: Vec<Place>) -> Self {
        Self {
            steps,
            is_sticky: false,
            processes: 1,
            attempts: 2,
            sends: 1,
            payloads: vec![0],
            has_stranger: false,
            has_events: false,
            faults: Faults::default(),
        }
    }

    /// All models, with their names.
    pub fn all() -> [(&'static str, Self); 7] {
        [
            ("sticky", Self::sticky()),
            ("sticky, with dead letters", Self::sticky_letters()),
            ("stranger", Self::stranger()),
            ("lossy", Self::lossy()),
            ("lossy, with dead letters", Self::lossy_letters()),
            ("calls", Self::calls()),
            ("events", Self::events()),
        ]
    }

    /// Messages stay deliverable, and two processes of each service work side by side: what this model looks for is
    /// races.
    pub fn sticky() -> Self {
        let faults = Faults { rejections: 1, errors: 2, crashes: 1, pauses: 1, actions: 1, ..Faults::default() };
        let steps = vec![Place::There, Place::Outside, Place::There];
        Self { is_sticky: true, processes: 2, faults, ..Self::quiet(steps) }
    }

    /// The same with one host, and commands that become dead letters.
    pub fn sticky_letters() -> Self {
        let faults = Faults { letters: 1, ..Self::sticky().faults };
        Self { steps: vec![Place::There, Place::Outside], faults, ..Self::sticky() }
    }

    /// The same for a step that a stranger asks a host for, and takes back at the same time.
    pub fn stranger() -> Self {
        let faults = Faults { crashes: 2, ..Self::sticky().faults };
        Self { steps: vec![Place::There], has_stranger: true, payloads: Vec::new(), faults, ..Self::sticky() }
    }

    /// Every message is published, delivered and settled by itself, and may be lost: what this model looks for is that
    /// nothing stands still.
    pub fn lossy() -> Self {
        let faults = Faults { rejections: 1, errors: 1, crashes: 2, losses: 2, repeats: 2, ..Faults::default() };
        Self { sends: 4, faults, ..Self::quiet(vec![Place::There, Place::There]) }
    }

    /// The same with one host, with commands that become dead letters, and a person.
    pub fn lossy_letters() -> Self {
        let faults =
            Faults { errors: 2, crashes: 1, losses: 1, repeats: 1, letters: 1, actions: 1, ..Self::lossy().faults };
        Self { faults, steps: vec![Place::There], ..Self::lossy() }
    }

    /// One service by itself, with a call that it makes.
    pub fn calls() -> Self {
        let faults = Faults { rejections: 1, errors: 2, crashes: 2, pauses: 1, actions: 1, ..Faults::default() };
        Self { processes: 2, faults, ..Self::quiet(vec![Place::Here, Place::Outside]) }
    }

    /// One service by itself, with events, a broker that refuses them, and several clients of one key.
    pub fn events() -> Self {
        let faults = Faults { rejections: 1, errors: 1, crashes: 2, repeats: 1, refusals: 1, ..Faults::default() };
        let quiet = Self::quiet(vec![Place::Here, Place::Here]);
        Self { processes: 2, has_events: true, payloads: vec![0, 0, 1], faults, ..quiet }
    }
}
