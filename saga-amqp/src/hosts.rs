use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

use lapin::uri::AMQPUri;

/// The hosts of a URL, in its order, and which of them is tried first. All connections of a transport share that: a node
/// that one of them found dead is no longer the first to be tried by the others.
#[derive(Debug, Clone, Default)]
pub(crate) struct Turn(Arc<AtomicUsize>);

impl Turn {
    /// The numbers of so many hosts, in the order in which they are tried.
    pub(crate) fn order(&self, hosts: usize) -> impl Iterator<Item = usize> + use<> {
        let first = self.0.load(Ordering::Relaxed);
        (0..hosts).map(move |offset| (first + offset) % hosts)
    }

    /// This one works.
    pub(crate) fn stay(&self, host: usize) {
        self.0.store(host, Ordering::Relaxed);
    }

    /// What was connected to this one is lost: the next one is tried first, once for all that lost it.
    pub(crate) fn move_on(&self, host: usize) {
        _ = self.0.compare_exchange(host, host + 1, Ordering::Relaxed, Ordering::Relaxed);
    }
}

/// Reads a URL with one host or several: `amqp://user:password@one:5672,two:5672/virtual-host`.
///
/// # Errors
/// A sentence that repeats nothing of the URL.
pub(crate) fn read(url: &str) -> Result<Vec<AMQPUri>, String> {
    let unreadable = |what: String| format!("{what} cannot be read");
    let Some((scheme, behind)) = url.split_once("://") else {
        return Err(unreadable("the broker's URL".to_owned()));
    };
    let end = behind.find(['/', '?', '#']).unwrap_or(behind.len());
    let (authority, rest) = behind.split_at(end);
    let (user, hosts) = match authority.rsplit_once('@') {
        Some((user, hosts)) => (format!("{user}@"), hosts),
        None => (String::new(), authority),
    };
    let hosts: Vec<&str> = hosts.split(',').collect();
    let count = hosts.len();
    let uri = |(place, host): (usize, &&str)| {
        let what = || {
            if count == 1 {
                "the broker's URL".to_owned()
            } else {
                format!("host {} of {count} of the broker's URL", place + 1)
            }
        };
        if count > 1 && host.is_empty() {
            return Err(format!("{} is empty", what()));
        }
        format!("{scheme}://{user}{host}{rest}").parse().map_err(|_| unreadable(what()))
    };
    hosts.iter().enumerate().map(uri).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn hosts(url: &str) -> Vec<(String, u16)> {
        let uris = read(url).unwrap();
        for uri in &uris {
            assert_eq!(uri.authority.userinfo.password, "a,b@c", "of each host: {url}");
            assert_eq!((uri.vhost.as_str(), uri.query.heartbeat), ("shop", Some(7)), "{url}");
        }
        uris.into_iter().map(|uri| (uri.authority.host, uri.authority.port)).collect()
    }

    #[test]
    fn several_hosts_share_all_but_their_addresses() {
        let url = |hosts: &str| format!("amqp://me:a,b%40c@{hosts}/shop?heartbeat=7");
        assert_eq!(hosts(&url("one")), [("one".to_owned(), 5672)]);
        let both = [("one".to_owned(), 1), ("10.0.0.2".to_owned(), 5672)];
        assert_eq!(hosts(&url("one:1,10.0.0.2")), both);
        assert_eq!(read("amqp://").unwrap()[0].authority.host, "localhost");
        assert_eq!(read("amqp://one:1,two:2").unwrap()[1].authority.port, 2);
    }

    #[test]
    fn what_cannot_be_read_is_said_without_the_password() {
        let check = |url: &str, says: &str| {
            let problem = read(url).expect_err(says);
            assert!(problem.contains(says) && !problem.contains("secret"), "{problem}");
        };
        check("amqp:secret", "the broker's URL cannot be read");
        check("amqp://me:secret@one:port/", "the broker's URL cannot be read");
        check("amqp://me:secret@one:1,two:port/", "host 2 of 2 of the broker's URL cannot be read");
        check("amqp://me:secret@one:1,,two:2/", "host 2 of 3 of the broker's URL is empty");
        check("amqp://me:secret@one:1,/", "host 2 of 2 of the broker's URL is empty");
    }

    #[test]
    fn all_that_lost_one_host_go_on_with_the_next() {
        let (turn, shared) = (Turn::default(), Turn::default());
        let other = shared.clone();
        assert_eq!(turn.order(3).collect::<Vec<_>>(), [0, 1, 2]);
        shared.move_on(0);
        other.move_on(0);
        assert_eq!(other.order(3).collect::<Vec<_>>(), [1, 2, 0]);
        other.stay(2);
        shared.move_on(0);
        assert_eq!(shared.order(3).collect::<Vec<_>>(), [2, 0, 1]);
        shared.move_on(2);
        assert_eq!(shared.order(3).collect::<Vec<_>>(), [0, 1, 2]);
    }
}
