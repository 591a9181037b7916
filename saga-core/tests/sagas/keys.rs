//! Keys: injective, of bounded length, read from the right, and refused with a sentence that says what is wrong.

use proptest::prelude::*;
use saga_core::key::{InvalidName, Key, Namespace, Tenant};
use saga_core::store::{LANES, StepId, StepKey, lane_of};

/// The longest step key that an outside service may be handed: the limit of most of them.
const OUTSIDE_KEY_BYTES_MAX: usize = 255;

/// Visible ASCII without `>`; what a step key is made of comes up often.
fn key_text() -> impl Strategy<Value = String> {
    prop_oneof![
        "[!-=?-~]{1,120}",
        "[ab:#u]{1,12}",
        "[a-b]{0,2}:(undo|undo#2|a|b|a#2)(:undo|:undo#2|:undo#3|:a|:a#2)?",
        "[!-=?-~]{118,120}",
    ]
}

fn step_name() -> impl Strategy<Value = String> {
    let name = prop_oneof!["[a-z0-9-]{1,40}", "[ab]{1,2}", "undo[a-z0-9-]{1,4}", "[a-z0-9-]{40}"];
    name.prop_filter("it is reserved", |name| name != "undo")
}

fn step_id() -> impl Strategy<Value = StepId> {
    let item = prop::option::of(prop_oneof![0..4_u32, any::<u32>()]);
    (step_name(), item, prop_oneof![Just(0_u32), Just(1), 2..5_u32, any::<u32>()]).prop_map(|(name, item, round)| {
        let doing = item.map_or_else(|| StepId::doing(&name), |item| StepId::of_item(&name, item));
        if round == 0 { doing } else { doing.undone(round) }
    })
}

fn step_key() -> impl Strategy<Value = StepKey> {
    (key_text(), step_id()).prop_map(|(key, step)| StepKey { key: Key::new(key).expect("a legal key"), step })
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(3_000))]

    /// G2, G12: no two steps share a step key, whatever their sagas' keys and their names are.
    #[test]
    fn g2_a_step_key_is_injective(a in step_key(), b in step_key()) {
        prop_assert_eq!(a == b, a.to_string() == b.to_string());
    }

    #[test]
    fn a_step_key_is_read_as_it_was_written(key in step_key()) {
        let text = key.to_string();
        let read = StepKey::parse(&text).expect("a step key can be read");
        prop_assert_eq!(&read, &key);
        prop_assert_eq!(read.step.step(), key.step.step());
        prop_assert_eq!(read.step.item(), key.step.item());
        prop_assert_eq!(read.step.undo_round(), key.step.undo_round());
    }

    #[test]
    fn only_what_can_be_written_is_read(text in "[a-c:#]{1,4}:[ab]{0,2}(#[+0-9]{0,3})?(:undo)?(#[+0-9]{0,3})?") {
        if let Ok(key) = StepKey::parse(&text) {
            prop_assert_eq!(key.to_string(), text);
            let name = key.step.step();
            let doing = key.step.item().map_or_else(|| StepId::doing(name), |item| StepId::of_item(name, item));
            let written = key.step.undo_round().map_or(doing.clone(), |round| doing.undone(round));
            prop_assert_eq!(key.step, written, "one key, one text");
        }
    }

    #[test]
    fn a_step_id_says_what_it_was_made_of(name in step_name(), round in 1..u32::MAX) {
        let doing = StepId::doing(&name);
        prop_assert_eq!((doing.step(), doing.undo_round()), (name.as_str(), None));
        let undoing = StepId::undoing(&name, round);
        prop_assert_eq!((undoing.step(), undoing.undo_round()), (name.as_str(), Some(round)));
        let stored = StepId::from_stored(undoing.as_str());
        prop_assert_eq!(stored, undoing);
    }

    /// What is called has one name for all items of a list, and is else the id itself.
    #[test]
    fn items_of_a_list_share_their_function(name in step_name(), item in any::<u32>(), round in 1..9_u32) {
        let doing = StepId::of_item(&name, item);
        prop_assert_eq!((doing.step(), doing.item(), &*doing.function()), (name.as_str(), Some(item), name.as_str()));
        let (undoing, of_all) = (doing.undone(round), StepId::undoing(&name, 1));
        prop_assert_eq!(&*undoing.function(), of_all.as_str());
        let alone = StepId::undoing(&name, round);
        prop_assert_eq!((&*alone.function(), alone.item()), (alone.as_str(), None));
    }

    /// Namespace, tenant, key and step together stay within the limit of those who are handed the key.
    #[test]
    fn an_outside_key_is_at_most_255_bytes(
        namespace in "[A-Za-z0-9_.-]{30,32}",
        tenant in "[A-Za-z0-9_.-]{30,32}",
        key in step_key(),
    ) {
        let namespace = Namespace::new(namespace).unwrap();
        let tenant = Tenant::new(tenant).unwrap();
        let outside = format!("{namespace}/{tenant}/{key}");
        prop_assert!(outside.len() <= OUTSIDE_KEY_BYTES_MAX);
    }

    /// Whatever is refused is refused with what it is, a cut of the text, and what is wrong with it.
    #[test]
    fn any_text_is_taken_or_refused_in_words(text in any::<String>()) {
        let refusals = [
            Key::new(&text).err(),
            Tenant::new(&text).err(),
            Namespace::new(&text).err(),
            StepKey::parse(&text).err(),
        ];
        for refusal in refusals.into_iter().flatten() {
            let sentence = refusal.to_string();
            prop_assert!(sentence.starts_with("the ") && sentence.len() < 1_200, "{}", sentence);
        }
    }
}

/// The lengths that the text of the limits names, at their edges.
#[test]
fn the_longest_of_everything_fits() {
    let key = Key::new("k".repeat(120)).unwrap();
    let longest = StepKey { key, step: StepId::undoing(&"s".repeat(40), u32::MAX) };
    let outside = format!("{}/{}/{longest}", "n".repeat(32), "t".repeat(32));
    assert!(outside.len() <= OUTSIDE_KEY_BYTES_MAX, "{}", outside.len());
}

/// Every refusal names what is wrong.
#[test]
fn refusals_name_what_is_wrong() {
    let refused = |result: Result<(), InvalidName>| result.expect_err("it is refused").to_string();
    let key = |text: &str| refused(Key::new(text).map(drop));
    let name = |text: &str| refused(StepKey::parse(&format!("k:{text}")).map(drop));
    let tenant = |text: &str| refused(Tenant::new(text).map(drop));
    let step_key = |text: &str| refused(StepKey::parse(text).map(drop));
    let cases = [
        (key(""), "the key \"\" is empty; give 1 to 120 bytes"),
        (key(&"k".repeat(121)), "has 121 bytes; at most 120 are allowed"),
        (key("a b"), "has a character at byte 1 that is not allowed; write visible ASCII without `>`"),
        (key("a>b"), "has a character at byte 1 that is not allowed; write visible ASCII without `>`"),
        (key("tab\t"), "has a character at byte 3"),
        (key("nul\0"), "has a character at byte 3"),
        (key("line\n"), "\"line\\n\" has a character at byte 4"),
        (key("caf\u{e9}"), "has a character at byte 3"),
        (key("del\u{7f}"), "has a character at byte 3"),
        (name(""), "the step name \"\" is empty"),
        (name("undo:undo"), "the step name \"undo\" is reserved: `key:step:undo` is the key of a compensation"),
        (name("Charge"), "has a character at byte 0 that is not allowed; write `[a-z0-9-]`"),
        (name("a_b"), "has a character at byte 1"),
        (name(&"s".repeat(41)), "has 41 bytes; at most 40 are allowed"),
        (tenant(""), "the tenant \"\" is empty"),
        (tenant("a/b"), "has a character at byte 1"),
        (tenant(&"t".repeat(33)), "has 33 bytes; at most 32 are allowed"),
        (refused(Namespace::new("a/b").map(drop)), "the namespace \"a/b\" has a character at byte 1"),
        (step_key("no-step"), "the step key \"no-step\" has no `:step` at its end"),
        (step_key("undo"), "has no `:step` at its end"),
        (step_key("a:undo"), "has no `:step` at its end"),
        (step_key("a:b:undo#x"), "has an undo that is not numbered `#n`"),
        (step_key("a:b:undo#1"), "has an undo that is not numbered `#n`"),
        (step_key(":a"), "the key \"\" is empty"),
    ];
    for (sentence, expected) in cases {
        assert!(sentence.contains(expected), "{sentence:?} does not say {expected:?}");
    }
    let long = key(&"x".repeat(100_000));
    assert!(long.len() < 200, "an over-long text is cut: {} bytes", long.len());
}

/// A lane is the same in every process and every version: relays of two versions must agree on it.
#[test]
fn lanes_stay_as_they_are() {
    let tenant = |text: &str| Tenant::from_stored(text).unwrap();
    let cases = [
        ("", "create-order", "1001", 37),
        ("", "create-order", "1002", 37),
        ("a", "create-order", "1001", 32),
        ("", "", "", 54),
        ("acme", "refund", "order-7:charge", 21),
        ("t.1", "x", "0123456789", 14),
    ];
    let lanes: Vec<u8> = cases.iter().map(|(t, topic, key, _)| lane_of(&tenant(t), topic, key)).collect();
    let expected: Vec<u8> = cases.iter().map(|case| case.3).collect();
    assert_eq!(lanes, expected);
    assert!(lanes.iter().all(|lane| *lane < LANES));
}

/// FNV-1a, written out once more from its definition: what a store may write in SQL.
#[test]
fn lanes_are_the_upper_bits_of_fnv_1a() {
    let tenant = Tenant::new("t").unwrap();
    let hash = b"t\0topic\0key\0"
        .iter()
        .fold(14_695_981_039_346_656_037_u64, |hash, byte| (hash ^ u64::from(*byte)).wrapping_mul(1_099_511_628_211));
    assert_eq!(u64::from(lane_of(&tenant, "topic", "key")), hash / (1 << 58));
}
