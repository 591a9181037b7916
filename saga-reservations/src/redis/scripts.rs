//! The scripts that run in Redis, and their keys.

use saga_redis::__private::Text;

macro_rules! scripts {
    ($($name:ident: $file:literal;)*) => {$(
        pub(super) static $name: Text =
            Text::new(concat!(include_str!("scripts/prelude.lua"), include_str!(concat!("scripts/", $file, ".lua"))));
    )*};
}

scripts! {
    EXTEND: "extend";
    LOAD: "load";
    LOOK: "look";
    LOWER: "lower";
    MARK: "mark";
    MARKS: "marks";
    PRUNE: "prune";
    RELEASE: "release";
    RESERVE: "reserve";
    SETTLE: "settle";
    SWEEP: "sweep";
}

/// All keys of a book have one hash tag, so that one script may take several resources in a cluster. Their names and order are
/// a part of the data in Redis.
pub(super) fn keys(prefix: &str) -> Vec<String> {
    named(
        prefix,
        &["incarnation", "counter", "holds", "resources", "expiry", "marks", "ended", "idle", "keys", "loaded"],
    )
}

/// The incarnation, and what an epoch begins without.
pub(super) fn keys_of_epoch(prefix: &str) -> Vec<String> {
    named(prefix, &["incarnation", "counter", "keys", "loaded"])
}

fn named(prefix: &str, names: &[&str]) -> Vec<String> {
    names.iter().map(|name| format!("{{{prefix}:reservations}}:{name}")).collect()
}
