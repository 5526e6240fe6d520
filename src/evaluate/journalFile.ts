/** Where an evaluation that isn't finished keeps what it has played, in its run's folder. */
export const journalFile = "played.jsonl"
