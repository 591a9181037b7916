//! The mail server. It sends a mail once for each key.

use std::collections::{BTreeMap, BTreeSet};
use std::fmt;

use tokio::sync::watch;

use crate::request::Mail;

/// The mail server. A clone is the same server.
#[derive(Debug, Clone, Default)]
pub struct MailServer(watch::Sender<Server>);

#[derive(Debug, Default)]
struct Server {
    is_down: bool,
    /// The users without a mailbox.
    missing: BTreeSet<String>,
    sent: BTreeMap<String, Mail>,
    failures: u32,
}

/// Why a mail was not sent.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum MailError {
    Down,
    /// This user has none.
    NoMailbox(String),
}

impl MailServer {
    /// Sends a mail.
    pub fn send(&self, key: &str, mail: &Mail) -> Result<(), MailError> {
        let mut answer = Ok(());
        self.0.send_modify(|server| {
            answer = server.accept(mail);
            match answer {
                Ok(()) => drop(server.sent.insert(key.to_owned(), mail.clone())),
                Err(_) => server.failures += 1,
            }
        });
        answer
    }

    /// Takes the server down, or brings it back.
    pub fn set_down(&self, is_down: bool) {
        self.0.send_modify(|server| server.is_down = is_down);
    }

    /// Removes the mailbox of a user.
    pub fn remove_mailbox(&self, user: &str) {
        self.0.send_modify(|server| _ = server.missing.insert(user.to_owned()));
    }

    /// Makes a mailbox for a user.
    pub fn make_mailbox(&self, user: &str) {
        self.0.send_modify(|server| _ = server.missing.remove(user));
    }

    /// How many mails a user got.
    pub fn mails_to(&self, user: &str) -> usize {
        self.0.borrow().sent.values().filter(|mail| mail.to == user).count()
    }

    /// Waits until so many mails were not sent.
    pub async fn has_failed(&self, times: u32) {
        // It fails only if there is no sender, and this is one.
        _ = self.0.subscribe().wait_for(|server| server.failures >= times).await;
    }
}

impl Server {
    fn accept(&self, mail: &Mail) -> Result<(), MailError> {
        match () {
            () if self.is_down => Err(MailError::Down),
            () if self.missing.contains(&mail.to) => Err(MailError::NoMailbox(mail.to.clone())),
            () => Ok(()),
        }
    }
}

impl fmt::Display for MailError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Down => f.write_str("the mail server is down"),
            Self::NoMailbox(user) => write!(f, "{user} has no mailbox; make one, and retry this step"),
        }
    }
}

impl std::error::Error for MailError {}
