//! Free ports, and what a server says when it lost the race for one.

use std::collections::hash_map::RandomState;
use std::hash::{BuildHasher as _, Hasher as _};
use std::net::{Ipv4Addr, TcpListener};

use crate::error::Error;

/// Below the ports that the system hands to outgoing connections, so that none of those takes the port of a server that
/// is down for a moment.
const PORTS: std::ops::Range<u16> = 12_000..32_000;

/// How often other ports are tried when another process took one between the choice and the start.
pub(crate) const STARTS_MAX: u32 = 5;

const TRIES_MAX: usize = 1_000;

/// A port without a listener at the moment.
pub(crate) fn free_port() -> Result<u16, Error> {
    for _ in 0..TRIES_MAX {
        // A fresh state is seeded by the system, so two processes do not walk the same ports.
        let random = RandomState::new().build_hasher().finish();
        let offset = random % u64::from(PORTS.end - PORTS.start);
        let port = PORTS.start + offset as u16;
        if TcpListener::bind((Ipv4Addr::LOCALHOST, port)).is_ok() {
            return Ok(port);
        }
    }
    Err(Error::System {
        doing: format!("find a free port among {} to {}", PORTS.start, PORTS.end),
        source: std::io::ErrorKind::AddrInUse.into(),
    })
}

/// Whether a server's log says that its port was taken.
pub(crate) fn says_port_is_taken(log: &str) -> bool {
    let log = log.to_lowercase();
    ["address already in use", "address in use", "eaddrinuse", "could not bind"].iter().any(|words| log.contains(words))
}

#[cfg(test)]
mod tests {
    use std::net::{Ipv4Addr, TcpListener};

    use super::{PORTS, free_port, says_port_is_taken};

    #[test]
    fn a_free_port_can_be_listened_on() {
        let port = free_port().expect("there is a free port");
        assert!(PORTS.contains(&port), "{port}");
        TcpListener::bind((Ipv4Addr::LOCALHOST, port)).expect("it is free");
    }

    #[test]
    fn a_lost_race_is_told_from_other_failures() {
        assert!(says_port_is_taken("could not bind IPv4 address \"127.0.0.1\": Address already in use"));
        assert!(says_port_is_taken("failed to start ranch listener: eaddrinuse"));
        assert!(!says_port_is_taken("FATAL:  data directory \"/x\" has wrong ownership"));
    }
}
