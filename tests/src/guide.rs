//! The chapters of the guide and other pages with code, which is compiled and run as tests of the documentation.

macro_rules! chapters {
    ($($name:ident = $path:literal),* $(,)?) => {$(
        #[doc = include_str!($path)]
        #[derive(Debug)]
        pub struct $name;
    )*};
}

chapters! {
    QuickStart = "../../docs/guide/src/quick-start.md",
    Steps = "../../docs/guide/src/steps.md",
    Failures = "../../docs/guide/src/failures.md",
    Composition = "../../docs/guide/src/composition.md",
    Time = "../../docs/guide/src/time.md",
    Locks = "../../docs/guide/src/locks.md",
    Versions = "../../docs/guide/src/versions.md",
    Services = "../../docs/guide/src/services.md",
    Choreography = "../../docs/guide/src/choreography.md",
    ChoosingATransport = "../../docs/guide/src/choosing-a-transport.md",
    Http = "../../docs/guide/src/http.md",
    Reservations = "../../docs/guide/src/reservations.md",
    Operating = "../../docs/guide/src/operating.md",
    Retention = "../../docs/guide/src/retention.md",
    Testing = "../../docs/guide/src/testing.md",
    WritingAStore = "../../docs/guide/src/writing-a-store.md",
    WritingATransport = "../../docs/guide/src/writing-a-transport.md",
    ChangeDataCapture = "../../docs/cdc.md",
    Security = "../../docs/security.md",
}
