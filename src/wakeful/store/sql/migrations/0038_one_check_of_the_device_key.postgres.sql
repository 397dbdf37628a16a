-- Nodes compare their device keys by the key that signs push messages, so the fingerprint is not needed any more.
-- A node of an earlier version reads this table only when it starts, which a newer schema refuses.
DROP TABLE home_device;
