//! External keys: the idempotency keys that external steps give to other systems.

use super::key::Key;
use super::step_id::StepId;
use super::tenant::{Namespace, Tenant};

/// The key that other services see: `key:step`, or `namespace/tenant/key:step` if a namespace is set or the tenant is not the
/// default one. The default tenant is left out, unless the key contains a `/` and would look like the key of another tenant.
pub(crate) fn external_key(namespace: Option<&Namespace>, tenant: &Tenant, key: &Key, step: &StepId) -> String {
    let is_clear = match namespace {
        None => !key.as_str().starts_with('/'),
        Some(_) => !key.as_str().contains('/'),
    };
    match namespace {
        None if tenant.is_default() && is_clear => format!("{key}:{step}"),
        Some(namespace) if tenant.is_default() && is_clear => format!("{namespace}/{key}:{step}"),
        _ => format!("{}/{tenant}/{key}:{step}", namespace.map_or("", Namespace::as_str)),
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::super::{Key, Namespace, StepId, Tenant};
    use super::external_key;

    fn whose() -> impl Strategy<Value = (String, String)> {
        ("[ab]{0,2}", prop_oneof!["[ab/:]{1,6}", "/?[ab]{1,2}/[ab]{1,2}"])
    }

    fn shown(namespace: Option<&Namespace>, (tenant, key): &(String, String)) -> String {
        let tenant = Tenant::from_stored(tenant).expect("a legal tenant");
        external_key(namespace, &tenant, &Key::new(key).expect("a legal key"), &StepId::doing("step"))
    }

    proptest! {
        #![proptest_config(ProptestConfig::with_cases(5_000))]

        /// G12: no two tenants of a service share a key outside, whatever their sagas' keys are.
        #[test]
        fn g12_an_outside_key_is_injective(namespace in prop::option::of("[ab]"), a in whose(), b in whose()) {
            let namespace = namespace.map(|text| Namespace::new(text).expect("a legal namespace"));
            prop_assert_eq!(a == b, shown(namespace.as_ref(), &a) == shown(namespace.as_ref(), &b));
        }
    }

    #[test]
    fn an_outside_key_is_as_short_as_can_be() {
        let shop = Namespace::new("shop").expect("a legal namespace");
        let check = |namespace, tenant: &str, key: &str, expected: &str| {
            assert_eq!(shown(namespace, &(tenant.to_owned(), key.to_owned())), expected);
        };
        check(None, "", "7", "7:step");
        check(None, "", "orders/7", "orders/7:step");
        check(None, "acme", "7", "/acme/7:step");
        check(None, "", "/acme/7", "///acme/7:step");
        check(Some(&shop), "", "7", "shop/7:step");
        check(Some(&shop), "acme", "7", "shop/acme/7:step");
        check(Some(&shop), "", "acme/7", "shop//acme/7:step");
    }
}
