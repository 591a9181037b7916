//! What a run measures.

use super::options::Options;
use super::work::{Spec, Subject, Work};

const ALL: [Work; 17] = [
    Work::Orders,
    Work::Undo,
    Work::Hot,
    Work::HotLocked,
    Work::HotReplicas,
    Work::HotLockedReplicas,
    Work::Batch,
    Work::Retrying,
    Work::Portable,
    Work::Locked,
    Work::Held,
    Work::HandedOver,
    Work::Tenants,
    Work::TenantsApart,
    Work::Alone,
    Work::Finished,
    Work::Waiting,
];

/// The works that were asked for.
pub(super) fn works(options: &Options) -> Vec<Work> {
    ALL.into_iter().filter(|work| options.work.is_empty() || options.work.contains(work)).collect()
}

/// What is measured in each round, one after the other. What a work is compared with is measured beside it.
pub(super) fn specs(options: &Options, peers: &[String]) -> Vec<Spec> {
    let mut specs: Vec<Spec> = Vec::new();
    let mut add = |work, in_flight, subject| {
        let spec = Spec::new(work, in_flight, subject);
        if !specs.contains(&spec) {
            specs.push(spec);
        }
    };
    let in_flight = if options.in_flight.is_empty() { &[16, 64, 256][..] } else { &options.in_flight };
    for work in works(options) {
        match work {
            Work::Orders => {
                for &in_flight in in_flight {
                    // Above 64 only the runtime is measured, which is compared with the floors at 64.
                    let at = in_flight.min(64);
                    add(work, at, Subject::F1);
                    add(work, at, Subject::F4);
                    for peer in peers {
                        add(work, at, Subject::Peer(peer.clone()));
                    }
                    add(work, in_flight, Subject::Saga);
                }
            }
            Work::Undo
            | Work::Retrying
            | Work::Portable
            | Work::Locked
            | Work::Held
            | Work::Tenants
            | Work::TenantsApart => {
                add(Work::Orders, 64, Subject::Saga);
                add(work, 64, Subject::Saga);
                if work == Work::Undo {
                    for peer in peers {
                        add(work, 64, Subject::Peer(peer.clone()));
                    }
                }
            }
            Work::Hot => {
                add(work, 16, Subject::F1);
                add(work, 16, Subject::Saga);
            }
            Work::HotLocked => {
                add(Work::Hot, 16, Subject::Saga);
                add(work, 16, Subject::Saga);
            }
            Work::HotReplicas => add(work, 16, Subject::Saga),
            Work::HotLockedReplicas => {
                add(Work::HotReplicas, 16, Subject::Saga);
                add(work, 16, Subject::Saga);
            }
            Work::HandedOver => {
                add(Work::Alone, 1, Subject::Saga);
                add(work, 64, Subject::Saga);
            }
            Work::Batch => {
                for peer in peers {
                    add(Work::Orders, 64, Subject::Peer(peer.clone()));
                }
                add(work, 256, Subject::F5);
                add(work, 256, Subject::Saga);
            }
            Work::Alone => {
                add(work, 1, Subject::F1);
                add(work, 1, Subject::Saga);
            }
            Work::Finished => {
                add(work, 64, Subject::Saga);
                add(work, 64, Subject::SagaAmongFinished);
            }
            Work::Waiting => add(work, 1_024, Subject::Saga),
        }
    }
    specs
}
