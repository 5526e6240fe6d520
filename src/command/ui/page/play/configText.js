/**
 * Reads and changes single settings in the text of a config, and leaves the rest of the text as the user wrote it.
 *
 * @example
 * ```js
 * settingIn("seed: 1\nalgorithm:\n  gamma: 0.9\n", "algorithm.gamma") // "0.9"
 * withSetting("seed: 1\n", "seed", "2") // "seed: 2\n"
 * ```
 */

const pattern = /^(?<indent> *)(?<name>\w+):(?<space> *)(?<value>[^#]*?)(?<comment>\s*(?:#.*)?)$/

/** Returns the index of the line with a setting, such as `seed` or `algorithm.gamma`; −1 if no line has it. */
const indexOf = (lines, path) => {
  const [key, section] = path.split(".").toReversed()
  let current
  return lines.findIndex((line) => {
    const { indent, name } = pattern.exec(line)?.groups ?? {}
    if (name === undefined) return false
    if (indent === "") current = name
    return name === key && (section === undefined ? indent === "" : indent === "  " && current === section)
  })
}

/** Returns the text of a setting's value; undefined if the config has no line for it. */
export const settingIn = (config, path) => {
  const lines = config.split("\n")
  return pattern.exec(lines[indexOf(lines, path)] ?? "")?.groups.value
}

/** Replaces the value of a setting that the config has. */
export const withSetting = (config, path, value) => {
  const lines = config.split("\n")
  const index = indexOf(lines, path)
  if (index < 0) return config
  const { indent, name, comment } = pattern.exec(lines[index]).groups
  lines[index] = `${indent}${name}: ${value}${comment}`
  return lines.join("\n")
}
