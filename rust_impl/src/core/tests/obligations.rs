//! That each use of `unsafe` names what it rests on. Where it may stand, and that each use has a comment, the compiler
//! and clippy see to (`lib.rs`).

use std::collections::BTreeSet;
use std::path::Path;

/// What is wrong with the obligations of that module.
fn faults(text: &str) -> Vec<String> {
    let mut faults = Vec::new();
    let mut listed = Vec::new();
    let mut named = BTreeSet::new();
    let lines: Vec<&str> = text.lines().map(str::trim).collect();
    for (at, line) in lines.iter().enumerate() {
        if let Some((number, _)) = line.strip_prefix("//! O").and_then(|rest| rest.split_once(". ")) {
            listed.push(number.to_owned());
        }
        let begins = |line: &str| line.starts_with("// SAFETY:") || line == "/// # Safety";
        if begins(line) {
            let comment = lines[at..].iter().take_while(|line| line.starts_with("//"));
            let numbers: Vec<String> = comment.flat_map(|line| words(line)).filter_map(obligation).collect();
            if numbers.is_empty() {
                faults.push(format!("line {}: names no obligation", at + 1));
            }
            named.extend(numbers);
        }
    }
    let mut code = lines.iter().filter(|line| !line.starts_with("//")).flat_map(|line| line.split_whitespace());
    let is_use = |word: &str| word.trim_start_matches(|letter: char| !letter.is_alphanumeric()) == "unsafe";
    if listed.is_empty() && code.any(is_use) {
        faults.push("uses `unsafe` and lists no obligation".to_owned());
    }
    let expected: Vec<String> = (1..=listed.len()).map(|number| number.to_string()).collect();
    if listed != expected {
        faults.push(format!("its obligations are numbered {listed:?}"));
    }
    let listed: BTreeSet<String> = listed.into_iter().collect();
    faults.extend(named.difference(&listed).map(|number| format!("O{number} is named, not listed")));
    faults.extend(listed.difference(&named).map(|number| format!("O{number} is listed, and nothing names it")));
    faults
}

fn words(line: &str) -> impl Iterator<Item = &str> {
    line.split(|letter: char| !letter.is_alphanumeric())
}

/// The number of a word like O1.
fn obligation(word: &str) -> Option<String> {
    let number = word.strip_prefix('O')?;
    let digits = !number.is_empty() && number.bytes().all(|letter| letter.is_ascii_digit());
    digits.then(|| number.to_owned())
}

fn modules(folder: &Path, visit: &mut impl FnMut(&Path, &str)) {
    for path in std::fs::read_dir(folder).unwrap().map(|entry| entry.unwrap().path()) {
        if path.is_dir() {
            modules(&path, visit);
        } else {
            visit(&path, &std::fs::read_to_string(&path).unwrap());
        }
    }
}

#[test]
fn each_use_of_unsafe_names_its_obligations() {
    let (mut seen, mut wrong) = (0, Vec::new());
    modules(&Path::new(env!("CARGO_MANIFEST_DIR")).join("src"), &mut |path, text| {
        seen += 1;
        wrong.extend(faults(text).into_iter().map(|fault| format!("{}: {fault}", path.display())));
    });
    assert!(seen > 40);
    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
}

#[test]
fn finds_what_is_missing() {
    // Put together, or this module would count as one that uses it.
    let used = ["fn f() {\n    // SAFETY: O1, since it is so.\n    un", "safe { g() }\n}\n"].concat();
    assert_eq!(faults(&format!("//! O1. It is so.\n{used}")), Vec::<String>::new());
    assert_eq!(faults(&used), ["uses `unsafe` and lists no obligation", "O1 is named, not listed"]);
    assert_eq!(faults(&format!("//! O1. It is so.\n//! O2. So too.\n{used}")), ["O2 is listed, and nothing names it"]);
    assert_eq!(faults(&format!("//! O2. It is so.\n{used}")).len(), 3);
    let unnamed = used.replace("O1, since it", "it");
    assert_eq!(faults(&format!("//! O1. It is so.\n{unnamed}")).len(), 2);
}
