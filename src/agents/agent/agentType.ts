/**
 * Returns an agent's type as in configs, such as `history_agent`, from the name in a file: the runtime whose files this
 * library reads, too, writes the name of the class, `HistoryAgent`. The page loads this file, so it imports nothing.
 */
export const agentTypeOf = (name: string): string =>
  /^[A-Z][A-Za-z0-9]*$/.test(name) ? name.replace(/(?<=[a-z0-9])[A-Z]/g, (letter) => `_${letter}`).toLowerCase() : name
