use super::variable::{Check, Variable, boolean, list, secret};

const fn old_keys() -> Variable {
    let mut variable = list("QUEEN_ENCRYPTION_OLD_KEYS", "encryption.old_keys", &[]);
    variable.secret = true;
    variable
}

pub(super) const VARIABLES: &[Variable] = &[
    secret("QUEEN_ENCRYPTION_KEY", "encryption.key")
        .checked(Check::Hex64)
        .doc("Key of payload encryption, 64 hexadecimal digits, the same on all brokers."),
    old_keys().checked(Check::Hex64).doc("Keys that only decrypt, for a rotation."),
    boolean("QUEEN_ENCRYPTION_STRICT", "encryption.strict", true)
        .doc("Refuse to store plaintext on a queue that is flagged for encryption."),
    boolean("QUEEN_TENANCY_HEADER", "tenancy.header", false)
        .doc("Read the tenant from the header `x-queen-tenant`."),
    boolean("QUEEN_KV_TRUSTED_PROXY", "tenancy.trusted_proxy", false)
        .doc("Affirms that a proxy sets and strips that header; required with it."),
];
