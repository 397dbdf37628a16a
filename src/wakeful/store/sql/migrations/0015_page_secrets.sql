-- The digest of the secret that a browser's page keeps in its storage and sends beside the cookie. A browser's token
-- without one is from before there were any, and lets nobody in.
ALTER TABLE tokens ADD COLUMN page_digest TEXT;
