//! Which kind of schedule a seed stands for.

use super::random::Random;

/// How many schedules of a thousand have several services; they take longer than others.
const SERVICES_PER_MILLE: u32 = 150;
/// Sets the draw of which have several services apart from all others.
const SERVICES_SEED: u64 = 0x7365_7276_6963_6573;
/// How many schedules of a thousand have a crowd of sagas with batch steps, where they have one service.
const CROWD_PER_MILLE: u32 = 150;
/// Sets the draw of that apart from all others.
const CROWD_SEED: u64 = 0x0000_6372_6f77_6421;
/// In how many schedules of a thousand tenants share commits.
const SHARED_PER_MILLE: u32 = 300;
/// Sets the draw of that apart from all others.
const SHARED_SEED: u64 = 0x0000_7368_6172_6564;
/// How many schedules of a thousand have more work than lines, where they have one service. Each takes as long as a dozen
/// others.
const LOAD_PER_MILLE: u32 = 10;
/// Sets the draws of such schedules apart from all others.
pub(crate) const LOAD_SEED: u64 = 0x0000_0000_6c6f_6164;

/// How many schedules of a thousand have sagas that lock entities, where they have one service: a third of all.
const LOCKS_PER_MILLE: u32 = 400;
/// Sets the draw of that apart from all others.
const LOCKS_SEED: u64 = 0x0000_006c_6f63_6b73;

/// How many schedules of a thousand keep ended sagas for a time only, where they have one service, and where they have several.
const RETENTION_PER_MILLE: u32 = 60;
const RETENTION_OF_SERVICES_PER_MILLE: u32 = 100;
/// Sets the draws of such schedules apart from all others.
pub(crate) const RETENTION_SEED: u64 = 0x7265_7465_6e74_696f;

/// Whether the schedule of that seed has several services.
pub fn has_services(seed: u64) -> bool {
    Random::new(seed ^ SERVICES_SEED).per_mille(SERVICES_PER_MILLE)
}

/// Whether in the schedule of that seed many sagas with batch steps are started, where it has one service.
pub fn has_crowd(seed: u64) -> bool {
    Random::new(seed ^ CROWD_SEED).per_mille(CROWD_PER_MILLE)
}

/// Whether in the schedule of that seed one transaction may carry commands of several tenants.
pub fn shares_tenants(seed: u64) -> bool {
    Random::new(seed ^ SHARED_SEED).per_mille(SHARED_PER_MILLE)
}

/// Whether sagas lock entities in the schedule of that seed.
pub fn has_locks(seed: u64) -> bool {
    !has_services(seed) && !has_load(seed) && Random::new(seed ^ LOCKS_SEED).per_mille(LOCKS_PER_MILLE)
}

/// Whether there is more work than lines in the schedule of that seed.
pub fn has_load(seed: u64) -> bool {
    !has_services(seed) && Random::new(seed ^ LOAD_SEED).per_mille(LOAD_PER_MILLE)
}

/// Whether ended sagas are kept for a time only in the schedule of that seed.
pub fn has_retention(seed: u64) -> bool {
    let often = if has_services(seed) { RETENTION_OF_SERVICES_PER_MILLE } else { RETENTION_PER_MILLE };
    !has_load(seed) && Random::new(seed ^ RETENTION_SEED.rotate_left(8)).per_mille(often)
}
