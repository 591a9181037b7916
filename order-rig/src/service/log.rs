use tracing_subscriber::{
    filter::{LevelFilter, Targets},
    layer::SubscriberExt as _,
    util::SubscriberInitExt as _,
};

use crate::print::Stderr;

/// The variable with what is worth saying: error, warn, info, debug or trace; or several, for one target each, such as
/// `info,saga_core::engine=debug`.
const LEVEL: &str = "ORDER_RIG_LOG";
/// The clients of the broker and of the database. The first says of a message that no queue takes its whole content, at
/// each attempt; the second says of a lost connection where in the server's source code it was. The transport and the
/// store say the same in their own words.
const CLIENTS: [(&str, LevelFilter); 2] = [("lapin", LevelFilter::OFF), ("sqlx_core", LevelFilter::ERROR)];

/// Has the runtime say on standard error what a person should know of, such as a broker that is away.
pub(crate) fn log_to_stderr() {
    let subscriber = tracing_subscriber::fmt()
        .with_max_level(LevelFilter::TRACE)
        .with_writer(|| Stderr)
        .with_ansi(false)
        .finish()
        .with(filter(std::env::var(LEVEL).ok().as_deref()));
    // A test that calls this as a library may have set its own subscriber, which stays.
    let _ = subscriber.try_init();
}

/// What is said, if the variable has this text.
fn filter(asked: Option<&str>) -> Targets {
    // A word that is no level would be taken for a target, and all others would be silent.
    let is_word = |asked: &&str| asked.contains('=') || asked.parse::<LevelFilter>().is_ok();
    let targets: Targets = asked.filter(is_word).and_then(|asked| asked.parse().ok()).unwrap_or_default();
    let default = targets.default_level().unwrap_or(LevelFilter::WARN);
    CLIENTS.into_iter().fold(targets.with_default(default), |targets, (client, level)| {
        let is_named = targets.iter().any(|(target, _)| target.starts_with(client));
        if is_named { targets } else { targets.with_target(client, level) }
    })
}

#[cfg(test)]
mod tests {
    use tracing_subscriber::filter::LevelFilter as L;

    use super::*;

    #[test]
    fn contents_of_messages_are_logged_only_on_request() {
        let says = |asked: Option<&str>, target: &str, level: L| {
            level.into_level().is_some_and(|level| filter(asked).would_enable(target, &level))
        };
        for asked in [None, Some("loud"), Some("saga_amqp=info"), Some("warn"), Some("info"), Some("trace")] {
            assert!(says(asked, "saga_core::engine::relay", L::WARN), "{asked:?}");
            assert!(!says(asked, "lapin::returned_messages", L::WARN), "{asked:?}");
            assert!(!says(asked, "lapin::io_loop", L::ERROR), "{asked:?}");
            assert!(says(asked, "sqlx_core::pool", L::ERROR) && !says(asked, "sqlx_core::pool", L::WARN), "{asked:?}");
        }
        assert!(says(Some("info"), "saga_core", L::INFO) && !says(None, "saga_core", L::INFO));
        assert!(says(Some("warn,saga_core=debug"), "saga_core::engine", L::DEBUG));
        assert!(says(Some("warn,lapin=warn"), "lapin::returned_messages", L::WARN));
    }
}
