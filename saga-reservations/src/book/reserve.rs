use std::time::Duration;

use serde::{Deserialize, Serialize};

use super::name::{InvalidName, ReservationKey, ResourceName};
use super::reservation::Line;

/// The most resources of one reservation.
pub const LINES_MAX: usize = 64;
/// The shortest time that a hold may have.
pub const TTL_MIN: Duration = Duration::from_millis(1);
/// The longest time that a hold may have. Confirm what is to last longer.
pub const TTL_MAX: Duration = Duration::from_hours(24 * 366);
/// The time of a hold that says nothing else.
const TTL: Duration = Duration::from_mins(15);

/// What is to be reserved, and for how long. All lines are reserved, or none.
///
/// # Examples
/// ```
/// use saga_reservations::Reserve;
///
/// let seats = Reserve::of("seat/LH-400", 2).and("bag/LH-400", 3).ttl_mins(15);
/// assert!(seats.check().is_ok());
/// assert!(Reserve::of("seat/LH-400", 0).check().is_err());
///
/// // An intent that only one client may carry out: its resource has one unit, and is made by its first use.
/// let signup = Reserve::unique("signup", "ada@example.org").ttl_secs(30);
/// assert!(signup.check().is_ok());
/// ```
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Reserve {
    key: Option<String>,
    lines: Vec<(String, u32)>,
    is_unique: bool,
    ttl: Duration,
}

/// A request that cannot be served, whatever is free.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum InvalidReserve {
    /// A name or the key.
    #[error(transparent)]
    Name(#[from] InvalidName),
    /// The number of lines.
    #[error("the request has {0} lines; send 1 to {LINES_MAX}")]
    Lines(usize),
    /// A line of nothing.
    #[error("the request has the quantity 0 of {0}; send 1 or more")]
    NoQuantity(ResourceName),
    /// A unique intent of more than one.
    #[error("the request has the quantity {1} of the unique intent {0}; there is only one")]
    NotOne(ResourceName, u32),
    /// A resource that has two lines.
    #[error("the request names {0} twice; send one line with the sum")]
    Twice(ResourceName),
    /// The time.
    #[error("a time to live of {0:?} is refused: it must be between {TTL_MIN:?} and {TTL_MAX:?}")]
    Ttl(Duration),
}

impl Reserve {
    /// Some units of a resource, for 15 minutes.
    pub fn of(resource: impl Into<String>, quantity: u32) -> Self {
        Self { key: None, lines: vec![(resource.into(), quantity)], is_unique: false, ttl: TTL }
    }

    /// The lines as they were received.
    pub fn of_lines(lines: impl IntoIterator<Item = (String, u32)>) -> Self {
        Self { key: None, lines: lines.into_iter().collect(), is_unique: false, ttl: TTL }
    }

    /// A unique intent: what is known by `kind` and `id` can be held once at a time, and after its confirmation never again.
    /// `id` is whatever makes two requests the same, such as a hash of the request.
    pub fn unique(kind: &str, id: impl std::fmt::Display) -> Self {
        Self::of(format!("{kind}/{id}"), 1).once()
    }

    /// Some units of one more resource.
    #[must_use]
    pub fn and(mut self, resource: impl Into<String>, quantity: u32) -> Self {
        self.lines.push((resource.into(), quantity));
        self
    }

    /// Makes it a unique intent: resources that do not exist are made, with one unit.
    #[must_use]
    pub fn once(mut self) -> Self {
        self.is_unique = true;
        self
    }

    /// The key of the reservation. A repeated request must have the same one. Without it, a client draws one at random, and a
    /// saga step takes its own key.
    #[must_use]
    pub fn key(mut self, key: impl Into<String>) -> Self {
        self.key = Some(key.into());
        self
    }

    /// How long the units are held.
    #[must_use]
    pub fn ttl(mut self, ttl: Duration) -> Self {
        self.ttl = ttl;
        self
    }

    /// [`ttl`](Self::ttl) in seconds.
    #[must_use]
    pub fn ttl_secs(self, seconds: u64) -> Self {
        self.ttl(Duration::from_secs(seconds))
    }

    /// [`ttl`](Self::ttl) in minutes.
    #[must_use]
    pub fn ttl_mins(self, minutes: u64) -> Self {
        self.ttl(Duration::from_secs(minutes.saturating_mul(60)))
    }

    /// The key that was given, if any.
    ///
    /// # Errors
    /// When it cannot be a key.
    pub fn given_key(&self) -> Result<Option<ReservationKey>, InvalidName> {
        self.key.clone().map(ReservationKey::new).transpose()
    }

    /// The names and quantities as they were given.
    pub fn given_lines(&self) -> &[(String, u32)] {
        &self.lines
    }

    /// Whether it is a unique intent.
    pub fn is_unique(&self) -> bool {
        self.is_unique
    }

    /// How long the units are to be held.
    pub fn time_to_live(&self) -> Duration {
        self.ttl
    }

    /// The lines in the order of their names, in which every store takes them.
    ///
    /// # Errors
    /// When the request cannot be served, whatever is free.
    pub fn check(&self) -> Result<Vec<Line>, InvalidReserve> {
        if !(1..=LINES_MAX).contains(&self.lines.len()) {
            return Err(InvalidReserve::Lines(self.lines.len()));
        }
        check_ttl(self.ttl)?;
        let named = |(name, quantity): &(String, u32)| {
            Ok(Line { resource: ResourceName::new(name.as_str())?, quantity: *quantity })
        };
        let mut lines = self.lines.iter().map(named).collect::<Result<Vec<_>, InvalidName>>()?;
        lines.sort_by(|one, other| one.resource.cmp(&other.resource));
        if let Some(line) = lines.iter().find(|line| line.quantity == 0) {
            return Err(InvalidReserve::NoQuantity(line.resource.clone()));
        }
        if let Some(line) = lines.iter().find(|line| self.is_unique && line.quantity > 1) {
            return Err(InvalidReserve::NotOne(line.resource.clone(), line.quantity));
        }
        if let Some([line, _]) = lines.array_windows().find(|[one, next]| one.resource == next.resource) {
            return Err(InvalidReserve::Twice(line.resource.clone()));
        }
        Ok(lines)
    }
}

/// Whether a hold may have this time.
pub(crate) fn check_ttl(ttl: Duration) -> Result<(), InvalidReserve> {
    if (TTL_MIN..=TTL_MAX).contains(&ttl) { Ok(()) } else { Err(InvalidReserve::Ttl(ttl)) }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn lines_are_sorted_and_what_cannot_be_served_is_refused() {
        let lines = Reserve::of("b", 1).and("a", 2).check().unwrap();
        assert_eq!(lines.iter().map(|line| line.resource.as_str()).collect::<Vec<_>>(), ["a", "b"]);
        let problem = |request: Reserve| request.check().unwrap_err().to_string();
        assert_eq!(problem(Reserve::of_lines([])), "the request has 0 lines; send 1 to 64");
        assert_eq!(problem(Reserve::of("a", 0)), "the request has the quantity 0 of a; send 1 or more");
        assert!(problem(Reserve::of("a", 1).and("b", 1).and("a", 2)).contains("names a twice"));
        assert!(problem(Reserve::of("a", 1).ttl(Duration::ZERO)).contains("0ns is refused"));
        assert!(problem(Reserve::of("a", 2).once()).contains("there is only one"));
        assert!(problem(Reserve::of("", 1)).contains("the resource name"));
        assert!(problem(Reserve::of_lines((0..65).map(|n| (n.to_string(), 1)))).contains("65 lines"));
    }
}
