use tracing_subscriber::filter::LevelFilter;

/// The variable with what is worth saying: error, warn, info, debug or trace.
const LEVEL: &str = "ORDER_SAGA_LOG";

/// Has the runtime say on standard error what a person should know of, such as a broker that is away.
pub(super) fn log_to_stderr() {
    let level = std::env::var(LEVEL).ok().and_then(|level| level.parse().ok()).unwrap_or(LevelFilter::WARN);
    // Whoever calls this as a library may have set a subscriber of their own, which stays.
    let _ = tracing_subscriber::fmt().with_max_level(level).with_writer(std::io::stderr).with_ansi(false).try_init();
}
