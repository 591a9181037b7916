//! The checker is checked: sound ledgers pass, and each kind of damage is found as what it is.

mod damage;
mod excuses;
mod excuses_in_place;
mod persons;
mod restarts;
mod sound;

use saga_testkit::checker::check;
use saga_testkit::sim::Random;

/// How many ledgers are made and how many of each damage are done.
const LEDGERS: u64 = 400;
const DAMAGES: usize = 25;

#[test]
fn sound_ledgers_pass() {
    for seed in 0..LEDGERS {
        let ledger = sound::ledger(&mut Random::new(seed));
        let found = check(&ledger);
        assert!(found.is_empty(), "seed {seed}: {found:#?}\n{}", serde_json::to_string(&ledger).unwrap());
    }
}

/// Makes ledgers until the damage could be done often enough, and demands that each is found under the right guarantee.
#[test]
fn every_damage_is_found_as_what_it_is() {
    for damage in damage::ALL {
        let mut done = 0;
        for seed in 0..LEDGERS * 10 {
            let mut random = Random::new(seed);
            let mut ledger = sound::ledger(&mut random);
            if (damage.apply)(&mut ledger, &mut random).is_none() {
                continue;
            }
            let found = check(&ledger);
            let is_found = found.iter().any(|violation| violation.guarantee == damage.breaks);
            assert!(is_found, "{}: seed {seed}: {} not found, only {found:#?}", damage.name, damage.breaks);
            done += 1;
            if done == DAMAGES {
                break;
            }
        }
        assert_eq!(done, DAMAGES, "{}: too few ledgers to damage", damage.name);
    }
}
