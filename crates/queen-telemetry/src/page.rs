//! From what the exporter renders to the page that is served.

use std::collections::BTreeMap;
use std::fmt::Write;

use crate::catalogue::CATALOGUE;

/// Orders the families by name, declares those that have no series yet, and spells infinity as the format wants it.
///
/// The exporter ends each family with an empty line, and no line of a family is empty: HELP texts and label values
/// have their newlines escaped.
pub(crate) fn finish(rendered: &str) -> String {
    let mut families: BTreeMap<&str, String> = BTreeMap::new();
    for block in rendered.split("\n\n").map(str::trim_end).filter(|block| !block.is_empty()) {
        families.insert(family_name(block), spell_infinity(block));
    }
    for family in CATALOGUE {
        families.entry(family.name).or_insert_with(|| {
            let (name, kind) = (family.name, family.kind.as_str());
            format!("# HELP {name} {}\n# TYPE {name} {kind}", family.description)
        });
    }
    let mut page = String::with_capacity(rendered.len() + 1024);
    for block in families.values() {
        // Writing to a String cannot fail.
        let _ = writeln!(page, "{block}");
    }
    page
}

fn family_name(block: &str) -> &str {
    let declared = block.lines().find_map(|line| line.strip_prefix("# TYPE "));
    declared.and_then(|line| line.split(' ').next()).unwrap_or(block)
}

fn spell_infinity(block: &str) -> String {
    let lines = block.lines().map(|line| match line.strip_suffix("inf") {
        Some(head) if head.ends_with(' ') => format!("{head}+Inf"),
        Some(head) if head.ends_with(" -") => format!("{head}Inf"),
        _ => line.to_owned(),
    });
    lines.collect::<Vec<_>>().join("\n")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn families_are_sorted_and_infinity_is_spelled() {
        let page =
            finish("# TYPE b gauge\nb{q=\"x inf\"} inf\nb -inf\n\n# HELP a A.\n# TYPE a counter\na 1\n\n");
        let own: Vec<&str> = page.lines().filter(|l| !l.contains("queen_")).collect();
        assert_eq!(
            own,
            ["# HELP a A.", "# TYPE a counter", "a 1", "# TYPE b gauge", "b{q=\"x inf\"} +Inf", "b -Inf"]
        );
    }

    #[test]
    fn every_family_is_declared_once() {
        let page = finish("");
        for family in CATALOGUE {
            let line = format!("# TYPE {} {}", family.name, family.kind.as_str());
            assert_eq!(page.lines().filter(|l| **l == line).count(), 1, "{line}");
        }
    }
}
