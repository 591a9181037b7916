//! The bodies.

use std::time::Duration;

use serde::{Deserialize, Serialize};

use crate::book::{FencingToken, Late, Line, Reservation, Reserve, Resource, State};

/// `POST /v1/reservations`
#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct ReserveBody {
    lines: Vec<LineBody>,
    ttl_millis: Option<u64>,
    #[serde(default)]
    unique: bool,
}

/// Names are checked with the request, so that they are refused as over gRPC.
#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
struct LineBody {
    resource: String,
    quantity: u32,
}

impl From<ReserveBody> for Reserve {
    fn from(body: ReserveBody) -> Self {
        let mut request = Self::of_lines(body.lines.into_iter().map(|line| (line.resource, line.quantity)));
        if let Some(millis) = body.ttl_millis {
            request = request.ttl(Duration::from_millis(millis));
        }
        if body.unique { request.once() } else { request }
    }
}

/// `POST /v1/reservations/{key}/confirm`
#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct ConfirmBody {
    pub(super) fencing_token: FencingToken,
    #[serde(default)]
    late: LateBody,
}

#[derive(Debug, Default, Deserialize)]
#[serde(rename_all = "snake_case")]
enum LateBody {
    #[default]
    Refuse,
    IfFree,
}

impl ConfirmBody {
    pub(super) fn late(&self) -> Late {
        match self.late {
            LateBody::Refuse => Late::Refuse,
            LateBody::IfFree => Late::IfFree,
        }
    }
}

/// `POST /v1/reservations/{key}/release`
#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct ReleaseBody {
    pub(super) fencing_token: Option<FencingToken>,
}

/// `POST /v1/reservations/{key}/extend`
#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct ExtendBody {
    pub(super) fencing_token: FencingToken,
    ttl_millis: u64,
}

impl ExtendBody {
    pub(super) fn ttl(&self) -> Duration {
        Duration::from_millis(self.ttl_millis)
    }
}

/// `POST /v1/reservations/{key}/return`
#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct ReturnBody {
    pub(super) fencing_token: FencingToken,
}

/// `PUT /v1/resources/{name}`
#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct CapacityBody {
    pub(super) capacity: u64,
}

/// A reservation. Times are as RFC 3339 has them.
#[derive(Debug, Serialize)]
pub(super) struct ShownReservation {
    key: String,
    lines: Vec<Line>,
    unique: bool,
    state: State,
    fencing_token: FencingToken,
    expires_at: String,
    changed_at: String,
}

impl From<Reservation> for ShownReservation {
    fn from(reservation: Reservation) -> Self {
        Self {
            key: reservation.key.into(),
            lines: reservation.lines,
            unique: reservation.is_unique,
            state: reservation.state,
            fencing_token: reservation.token,
            expires_at: reservation.expires_at.to_string(),
            changed_at: reservation.changed_at.to_string(),
        }
    }
}

/// A resource.
#[derive(Debug, Serialize)]
pub(super) struct ShownResource {
    name: String,
    capacity: u64,
    confirmed: u64,
    held: u64,
    last_fencing_token: FencingToken,
    unique: bool,
}

impl From<Resource> for ShownResource {
    fn from(resource: Resource) -> Self {
        Self {
            name: resource.name.into(),
            capacity: resource.capacity,
            confirmed: resource.confirmed,
            held: resource.held,
            last_fencing_token: resource.last_token,
            unique: resource.is_unique,
        }
    }
}
