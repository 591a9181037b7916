//! The file of a plan: the plan as JSON, with the tenant whose sagas it lists.

use anyhow::{Context as _, ensure};
use saga_core::Tenant;
use saga_core::engine::BatchPlan;
use serde_json::Value;

/// The field beside those of the plan. The default tenant is the empty text.
const TENANT: &str = "tenant";

/// A plan and its tenant. A plan that a program saved without one has none.
pub(crate) struct PlanFile {
    pub(crate) plan: BatchPlan,
    pub(crate) tenant: Option<Tenant>,
}

impl PlanFile {
    pub(crate) fn to_json(&self) -> serde_json::Result<Vec<u8>> {
        let mut file = serde_json::to_value(&self.plan)?;
        if let (Some(fields), Some(tenant)) = (file.as_object_mut(), &self.tenant) {
            fields.insert(TENANT.to_owned(), tenant.as_str().into());
        }
        serde_json::to_vec_pretty(&file)
    }

    pub(crate) fn from_json(text: &[u8]) -> anyhow::Result<Self> {
        let file: Value = serde_json::from_slice(text)?;
        let tenant = match file.get(TENANT) {
            Some(name) => Some(Tenant::from_stored(name.as_str().context("its tenant is no text")?)?),
            None => None,
        };
        Ok(Self { tenant, plan: serde_json::from_value(file)? })
    }

    /// The tenant to act on: that of the plan, which the command line may repeat.
    ///
    /// # Errors
    /// When the command line names another tenant, in which sagas may have the same keys and revisions.
    pub(crate) fn tenant(&self, named: Option<&Tenant>) -> anyhow::Result<Option<Tenant>> {
        let Some(tenant) = &self.tenant else { return Ok(named.cloned()) };
        let of = if tenant.is_default() { "the default tenant".to_owned() } else { format!("the tenant {tenant}") };
        ensure!(
            named.is_none_or(|named| named == tenant),
            "the plan lists sagas of {of}, and --tenant names another one; write a plan for that tenant"
        );
        Ok(Some(tenant.clone()))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_plan_has_the_tenant_of_its_file_or_of_the_command_line() {
        let read = |tenant: &str| {
            PlanFile::from_json(format!(r#"{{"id": "1", "action": "retry", "sagas": []{tenant}}}"#).as_bytes())
        };
        let acme = Tenant::new("acme").expect("a name");
        let without = read("").expect("a plan");
        assert_eq!(without.tenant(Some(&acme)).expect("any tenant"), Some(acme.clone()));
        assert_eq!(without.tenant(None).expect("any tenant"), None);
        let of_acme = read(r#", "tenant": "acme""#).expect("a plan");
        assert_eq!(of_acme.tenant(None).expect("its tenant"), Some(acme.clone()));
        let of_default = read(r#", "tenant": """#).expect("a plan");
        assert!(of_default.tenant(Some(&acme)).is_err());
        assert!(read(r#", "tenant": 1"#).is_err());
    }
}
