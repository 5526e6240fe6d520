/**
 * Returns an agent's type as in configs, such as `history_agent`. Files of another runtime have the name of the class
 * instead, `HistoryAgent`. The page loads this file, so it imports nothing.
 */
export const agentTypeOf = (name: string): string =>
  /^[A-Z][A-Za-z0-9]*$/.test(name) ? name.replace(/(?<=[a-z0-9])[A-Z]/g, (letter) => `_${letter}`).toLowerCase() : name
