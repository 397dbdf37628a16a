# Hostile statements, one a line. {outside}, {other}: a folder and another agent's file, put in by the test;
# \n is a new line, {{text*3}} is texttexttext.

# Other files
ATTACH DATABASE '{outside}/new.db' AS x
ATTACH '{outside}/canary.db' AS x
ATTACH ':memory:' AS x
ATTACH '' AS x
ATTACH 'file:{outside}/new.db?mode=rwc' AS x
ATTACH 'file:{outside}/canary.txt?immutable=1' AS x KEY 'y'
attach database '{other}' as o key ''
ATTACH (SELECT '{outside}/new.db') AS x
/**/ATTACH/**/'{outside}/n.db'/**/AS/**/x
DETACH main
DETACH temp
VACUUM
VACUUM main
VACUUM INTO '{outside}/copy.db'
VACUUM main INTO '{outside}/copy.db'
VACUUM INTO 'file:{outside}/copy.db?mode=rwc'
vacuum into (select '{outside}/copy.db')
SELECT load_extension('{outside}/canary.txt')
SELECT load_extension('/lib/x86_64-linux-gnu/libc.so.6')
SELECT load_extension('x', 'y')
SELECT readfile('{outside}/canary.txt')
SELECT writefile('{outside}/new.txt', 'x')
SELECT edit('x', 'sh')
SELECT * FROM fsdir('{outside}')
SELECT * FROM csv('{outside}/canary.txt')
SELECT * FROM zipfile('{outside}/canary.txt')
CREATE VIRTUAL TABLE x USING csv(filename='{outside}/canary.txt')
CREATE VIRTUAL TABLE temp.x USING csv(filename='{outside}/canary.txt')
.import {outside}/canary.txt tasks
.output {outside}/new.txt
.shell touch {outside}/new.txt
.open {other}
.load {outside}/canary.txt
.dump
SELECT sqlite3_backup('main', '{outside}/copy.db')
SELECT sqlcipher_export('x')
SELECT sqlcipher_export('main', 'temp')
SELECT fts3_tokenizer('simple')
SELECT fts3_tokenizer('x', x'0000000000000000')
SELECT sqlite_log(1, 'x')
SELECT eval('DROP TABLE tasks')
SELECT exec('x')
SELECT system('id')
SELECT unistr_quote('x')

# Keys and the cipher
SELECT sqlite3mc_config('cipher')
SELECT sqlite3mc_config('cipher', 'aegis')
SELECT sqlite3mc_config('default:cipher', 'aegis')
SELECT sqlite3mc_config('sqlcipher', 'legacy', 1)
SELECT sqlite3mc_codec_data('main')
SELECT sqlite3mc_codec_data('main', 'salt')
SELECT sqlite3mc_codec_data('main', 'raw')
SELECT sqlite3mc_version()
SELECT SQLITE3MC_CONFIG('cipher')
SELECT hex(sqlite3mc_codec_data('raw'))
UPDATE tasks SET title = sqlite3mc_codec_data('main')
INSERT INTO tasks (title) VALUES (sqlite3mc_codec_data('main'))
CREATE TABLE leak (a DEFAULT (sqlite3mc_codec_data('main')))
CREATE TABLE leak (a CHECK (sqlite3mc_config('cipher') IS NULL))
CREATE INDEX leak ON tasks (sqlite3mc_version())

# Every PRAGMA, read, set, called and as a table
PRAGMA analysis_limit
PRAGMA analysis_limit = 1
PRAGMA application_id
PRAGMA application_id = 1
PRAGMA auto_vacuum
PRAGMA auto_vacuum = 1
PRAGMA automatic_index
PRAGMA automatic_index = 1
PRAGMA busy_timeout
PRAGMA busy_timeout = 1
PRAGMA cache_size
PRAGMA cache_size = 1
PRAGMA cache_spill
PRAGMA cache_spill = 1
PRAGMA case_sensitive_like
PRAGMA case_sensitive_like = 1
PRAGMA cell_size_check
PRAGMA cell_size_check = 1
PRAGMA checkpoint_fullfsync
PRAGMA checkpoint_fullfsync = 1
PRAGMA collation_list
PRAGMA collation_list = 1
PRAGMA compile_options
PRAGMA compile_options = 1
PRAGMA count_changes
PRAGMA count_changes = 1
PRAGMA data_version
PRAGMA data_version = 1
PRAGMA database_list
PRAGMA database_list = 1
PRAGMA defer_foreign_keys
PRAGMA defer_foreign_keys = 1
PRAGMA empty_result_callbacks
PRAGMA empty_result_callbacks = 1
PRAGMA encoding
PRAGMA encoding = 1
PRAGMA foreign_key_check
PRAGMA foreign_key_check = 1
PRAGMA foreign_key_list
PRAGMA foreign_key_list = 1
PRAGMA foreign_keys
PRAGMA foreign_keys = 1
PRAGMA freelist_count
PRAGMA freelist_count = 1
PRAGMA full_column_names
PRAGMA full_column_names = 1
PRAGMA fullfsync
PRAGMA fullfsync = 1
PRAGMA function_list
PRAGMA function_list = 1
PRAGMA hard_heap_limit
PRAGMA hard_heap_limit = 1
PRAGMA ignore_check_constraints
PRAGMA ignore_check_constraints = 1
PRAGMA incremental_vacuum
PRAGMA incremental_vacuum = 1
PRAGMA index_info
PRAGMA index_info = 1
PRAGMA index_list
PRAGMA index_list = 1
PRAGMA index_xinfo
PRAGMA index_xinfo = 1
PRAGMA integrity_check
PRAGMA integrity_check = 1
PRAGMA journal_mode
PRAGMA journal_mode = 1
PRAGMA journal_size_limit
PRAGMA journal_size_limit = 1
PRAGMA legacy_alter_table
PRAGMA legacy_alter_table = 1
PRAGMA locking_mode
PRAGMA locking_mode = 1
PRAGMA max_page_count
PRAGMA max_page_count = 1
PRAGMA mmap_size
PRAGMA mmap_size = 1
PRAGMA module_list
PRAGMA module_list = 1
PRAGMA optimize
PRAGMA optimize = 1
PRAGMA page_count
PRAGMA page_count = 1
PRAGMA page_size
PRAGMA page_size = 1
PRAGMA pragma_list
PRAGMA pragma_list = 1
PRAGMA query_only
PRAGMA query_only = 1
PRAGMA quick_check
PRAGMA quick_check = 1
PRAGMA read_uncommitted
PRAGMA read_uncommitted = 1
PRAGMA recursive_triggers
PRAGMA recursive_triggers = 1
PRAGMA reverse_unordered_selects
PRAGMA reverse_unordered_selects = 1
PRAGMA schema_version
PRAGMA schema_version = 1
PRAGMA secure_delete
PRAGMA secure_delete = 1
PRAGMA short_column_names
PRAGMA short_column_names = 1
PRAGMA shrink_memory
PRAGMA shrink_memory = 1
PRAGMA soft_heap_limit
PRAGMA soft_heap_limit = 1
PRAGMA synchronous
PRAGMA synchronous = 1
PRAGMA table_info
PRAGMA table_info = 1
PRAGMA table_list
PRAGMA table_list = 1
PRAGMA table_xinfo
PRAGMA table_xinfo = 1
PRAGMA temp_store
PRAGMA temp_store = 1
PRAGMA temp_store_directory
PRAGMA temp_store_directory = 1
PRAGMA threads
PRAGMA threads = 1
PRAGMA trusted_schema
PRAGMA trusted_schema = 1
PRAGMA user_version
PRAGMA user_version = 1
PRAGMA wal_autocheckpoint
PRAGMA wal_autocheckpoint = 1
PRAGMA wal_checkpoint
PRAGMA wal_checkpoint = 1
PRAGMA writable_schema
PRAGMA writable_schema = 1
PRAGMA key
PRAGMA key = 1
PRAGMA rekey
PRAGMA rekey = 1
PRAGMA hexkey
PRAGMA hexkey = 1
PRAGMA hexrekey
PRAGMA hexrekey = 1
PRAGMA textkey
PRAGMA textkey = 1
PRAGMA cipher
PRAGMA cipher = 1
PRAGMA legacy
PRAGMA legacy = 1
PRAGMA kdf_iter
PRAGMA kdf_iter = 1
PRAGMA cipher_salt
PRAGMA cipher_salt = 1
PRAGMA hmac_use
PRAGMA hmac_use = 1
PRAGMA plaintext_header_size
PRAGMA plaintext_header_size = 1
PRAGMA cipher_page_size
PRAGMA cipher_page_size = 1
PRAGMA cipher_export
PRAGMA cipher_export = 1
PRAGMA cipher_migrate
PRAGMA cipher_migrate = 1
PRAGMA cipher_version
PRAGMA cipher_version = 1
PRAGMA sqlcipher_export
PRAGMA sqlcipher_export = 1
SELECT * FROM pragma_analysis_limit
SELECT * FROM pragma_application_id
SELECT * FROM pragma_auto_vacuum
SELECT * FROM pragma_automatic_index
SELECT * FROM pragma_busy_timeout
SELECT * FROM pragma_cache_size
SELECT * FROM pragma_cache_spill
SELECT * FROM pragma_case_sensitive_like
SELECT * FROM pragma_cell_size_check
SELECT * FROM pragma_checkpoint_fullfsync
SELECT * FROM pragma_collation_list
SELECT * FROM pragma_compile_options
SELECT * FROM pragma_count_changes
SELECT * FROM pragma_data_version
SELECT * FROM pragma_database_list
SELECT * FROM pragma_defer_foreign_keys
SELECT * FROM pragma_empty_result_callbacks
SELECT * FROM pragma_encoding
SELECT * FROM pragma_foreign_key_check
SELECT * FROM pragma_foreign_key_list
SELECT * FROM pragma_foreign_keys
SELECT * FROM pragma_freelist_count
SELECT * FROM pragma_full_column_names
SELECT * FROM pragma_fullfsync
SELECT * FROM pragma_function_list
SELECT * FROM pragma_hard_heap_limit
SELECT * FROM pragma_ignore_check_constraints
SELECT * FROM pragma_incremental_vacuum
SELECT * FROM pragma_index_info
SELECT * FROM pragma_index_list
SELECT * FROM pragma_index_xinfo
SELECT * FROM pragma_integrity_check
SELECT * FROM pragma_journal_mode
SELECT * FROM pragma_journal_size_limit
SELECT * FROM pragma_legacy_alter_table
SELECT * FROM pragma_locking_mode
SELECT * FROM pragma_max_page_count
SELECT * FROM pragma_mmap_size
SELECT * FROM pragma_module_list
SELECT * FROM pragma_optimize
SELECT * FROM pragma_page_count
SELECT * FROM pragma_page_size
SELECT * FROM pragma_pragma_list
SELECT * FROM pragma_query_only
SELECT * FROM pragma_quick_check
SELECT * FROM pragma_read_uncommitted
SELECT * FROM pragma_recursive_triggers
SELECT * FROM pragma_reverse_unordered_selects
SELECT * FROM pragma_schema_version
SELECT * FROM pragma_secure_delete
SELECT * FROM pragma_short_column_names
SELECT * FROM pragma_shrink_memory
SELECT * FROM pragma_soft_heap_limit
SELECT * FROM pragma_synchronous
SELECT * FROM pragma_table_info
SELECT * FROM pragma_table_list
SELECT * FROM pragma_table_xinfo
SELECT * FROM pragma_temp_store
SELECT * FROM pragma_temp_store_directory
SELECT * FROM pragma_threads
SELECT * FROM pragma_trusted_schema
SELECT * FROM pragma_user_version
SELECT * FROM pragma_wal_autocheckpoint
SELECT * FROM pragma_wal_checkpoint
SELECT * FROM pragma_writable_schema
PRAGMA main.key = 'x'
PRAGMA rekey('x')
PRAGMA "rekey" = 'x'
pragma/**/rekey/**/=/**/'x'
PRAGMA temp.journal_mode = OFF
SELECT count(*) FROM pragma_database_list
SELECT (SELECT name FROM pragma_table_list LIMIT 1)
SELECT * FROM pragma_table_info('_changelog')
SELECT * FROM pragma_table_xinfo('tasks')
SELECT * FROM main.pragma_function_list
SELECT name FROM pragma_function_list('x')
UPDATE tasks SET title = (SELECT file FROM pragma_database_list)

# Transactions
BEGIN
BEGIN IMMEDIATE
BEGIN EXCLUSIVE
COMMIT
END
ROLLBACK
SAVEPOINT x
RELEASE x
ROLLBACK TO x
RELEASE undo
ROLLBACK TO undo
COMMIT; DROP TABLE _changelog
ROLLBACK; DELETE FROM _changelog

# The host's tables
SELECT * FROM _changelog
SELECT count(*) FROM _changelog
SELECT * FROM main._changelog
SELECT * FROM "_changelog"
DELETE FROM _changelog
UPDATE _changelog SET rowid = 9
INSERT INTO _changelog DEFAULT VALUES
DROP TABLE _changelog
ALTER TABLE _changelog RENAME TO mine
ALTER TABLE _changelog ADD COLUMN x
CREATE INDEX mine__changelog ON _changelog (rowid)
CREATE TRIGGER tr AFTER INSERT ON _changelog BEGIN DELETE FROM _changelog; END
WITH x AS (SELECT * FROM _changelog) SELECT * FROM x
INSERT INTO tasks (title) SELECT * FROM _changelog
UPDATE tasks SET title = (SELECT count(*) FROM _changelog)
CREATE TABLE _changelog (a)
SELECT * FROM tasks WHERE EXISTS (SELECT 1 FROM _changelog)
SELECT * FROM _views
SELECT count(*) FROM _views
SELECT * FROM main._views
SELECT * FROM "_views"
DELETE FROM _views
UPDATE _views SET rowid = 9
INSERT INTO _views DEFAULT VALUES
DROP TABLE _views
ALTER TABLE _views RENAME TO mine
ALTER TABLE _views ADD COLUMN x
CREATE INDEX mine__views ON _views (rowid)
CREATE TRIGGER tr AFTER INSERT ON _views BEGIN DELETE FROM _views; END
WITH x AS (SELECT * FROM _views) SELECT * FROM x
INSERT INTO tasks (title) SELECT * FROM _views
UPDATE tasks SET title = (SELECT count(*) FROM _views)
CREATE TABLE _views (a)
SELECT * FROM tasks WHERE EXISTS (SELECT 1 FROM _views)
SELECT * FROM _tables
SELECT count(*) FROM _tables
SELECT * FROM main._tables
SELECT * FROM "_tables"
DELETE FROM _tables
UPDATE _tables SET rowid = 9
INSERT INTO _tables DEFAULT VALUES
DROP TABLE _tables
ALTER TABLE _tables RENAME TO mine
ALTER TABLE _tables ADD COLUMN x
CREATE INDEX mine__tables ON _tables (rowid)
CREATE TRIGGER tr AFTER INSERT ON _tables BEGIN DELETE FROM _tables; END
WITH x AS (SELECT * FROM _tables) SELECT * FROM x
INSERT INTO tasks (title) SELECT * FROM _tables
UPDATE tasks SET title = (SELECT count(*) FROM _tables)
CREATE TABLE _tables (a)
SELECT * FROM tasks WHERE EXISTS (SELECT 1 FROM _tables)
SELECT * FROM _meta
SELECT count(*) FROM _meta
SELECT * FROM main._meta
SELECT * FROM "_meta"
DELETE FROM _meta
UPDATE _meta SET rowid = 9
INSERT INTO _meta DEFAULT VALUES
DROP TABLE _meta
ALTER TABLE _meta RENAME TO mine
ALTER TABLE _meta ADD COLUMN x
CREATE INDEX mine__meta ON _meta (rowid)
CREATE TRIGGER tr AFTER INSERT ON _meta BEGIN DELETE FROM _meta; END
WITH x AS (SELECT * FROM _meta) SELECT * FROM x
INSERT INTO tasks (title) SELECT * FROM _meta
UPDATE tasks SET title = (SELECT count(*) FROM _meta)
CREATE TABLE _meta (a)
SELECT * FROM tasks WHERE EXISTS (SELECT 1 FROM _meta)
INSERT INTO _changelog (id, at, actor, op, hash) VALUES (99999, 'x', 'user', 'insert', x'00')
UPDATE _changelog SET actor = 'user'
UPDATE _changelog SET hash = x'00' WHERE id = 1
DELETE FROM _changelog WHERE run_id = 'run-1'
INSERT OR REPLACE INTO _changelog SELECT * FROM _changelog
REPLACE INTO _meta VALUES ('storage_warned', 'no')
DROP INDEX _changelog_by_run
DROP INDEX _changelog_by_row
ALTER TABLE _changelog DROP COLUMN hash
ALTER TABLE _changelog RENAME COLUMN actor TO who
ALTER TABLE tasks RENAME TO _changelog2
ALTER TABLE tasks RENAME TO _tasks
CREATE TABLE x (a REFERENCES _changelog (id) ON DELETE CASCADE, b); DROP TABLE _changelog
CREATE INDEX _mine ON tasks (title)
SELECT hash FROM "_ChangeLog"
SELECT [hash] FROM [_CHANGELOG]
SELECT `hash` FROM `_changelog`
CREATE TABLE IF NOT EXISTS _changelog (id)
SELECT name, purpose FROM _tables
SELECT id, hash FROM _changelog ORDER BY id DESC LIMIT 1
DELETE FROM _tables WHERE name NOT IN (SELECT name FROM main.sqlite_schema WHERE type = 'table')

# The schema
SELECT * FROM sqlite_schema
SELECT count(*) FROM sqlite_schema
SELECT * FROM sqlite_master
SELECT count(*) FROM sqlite_master
SELECT * FROM sqlite_temp_schema
SELECT count(*) FROM sqlite_temp_schema
SELECT * FROM sqlite_temp_master
SELECT count(*) FROM sqlite_temp_master
SELECT * FROM main.sqlite_schema
SELECT count(*) FROM main.sqlite_schema
SELECT * FROM temp.sqlite_schema
SELECT count(*) FROM temp.sqlite_schema
SELECT * FROM sqlite_sequence
SELECT count(*) FROM sqlite_sequence
SELECT * FROM sqlite_stat1
SELECT count(*) FROM sqlite_stat1
SELECT * FROM sqlite_stat4
SELECT count(*) FROM sqlite_stat4
SELECT * FROM sqlite_dbpage
SELECT count(*) FROM sqlite_dbpage
SELECT * FROM dbstat
SELECT count(*) FROM dbstat
SELECT * FROM sqlite_stmt
SELECT count(*) FROM sqlite_stmt
SELECT * FROM bytecode('SELECT 1')
SELECT count(*) FROM bytecode('SELECT 1')
SELECT * FROM tables_used('SELECT 1')
SELECT count(*) FROM tables_used('SELECT 1')
SELECT * FROM completion('S')
SELECT count(*) FROM completion('S')
SELECT * FROM sqlite_dbdata
SELECT count(*) FROM sqlite_dbdata
SELECT * FROM fts5vocab
SELECT count(*) FROM fts5vocab
SELECT * FROM carray(1, 1)
SELECT count(*) FROM carray(1, 1)
SELECT * FROM generate_series(1, 9)
SELECT count(*) FROM generate_series(1, 9)
SELECT * FROM rtreecheck('tasks')
SELECT count(*) FROM rtreecheck('tasks')
INSERT INTO sqlite_schema VALUES ('table', 'x', 'x', 2, 'CREATE TABLE x (a)')
UPDATE sqlite_schema SET sql = 'CREATE TABLE tasks (a)' WHERE name = 'tasks'
DELETE FROM sqlite_schema
UPDATE sqlite_master SET rootpage = 2
DROP TABLE sqlite_schema
ALTER TABLE sqlite_schema RENAME TO x
CREATE TABLE sqlite_x (a)
CREATE INDEX sqlite_autoindex_x ON tasks (title)
ANALYZE
ANALYZE tasks
REINDEX
REINDEX tasks
CREATE TABLE leak AS SELECT sql FROM sqlite_schema
INSERT INTO tasks (title) SELECT sql FROM sqlite_schema
INSERT INTO tasks (title) SELECT sql FROM main.sqlite_master
UPDATE tasks SET title = (SELECT group_concat(sql) FROM sqlite_schema)
SELECT * FROM (SELECT sql FROM sqlite_schema)
WITH s AS (SELECT * FROM sqlite_schema) SELECT * FROM s
SELECT 1 WHERE (SELECT count(*) FROM sqlite_schema) > 3
EXPLAIN SELECT 1
EXPLAIN QUERY PLAN SELECT 1
explain/**/SELECT 1
EXPLAIN SELECT * FROM tasks
EXPLAIN QUERY PLAN SELECT * FROM tasks
explain/**/SELECT * FROM tasks
EXPLAIN INSERT INTO tasks (title) VALUES ('x')
EXPLAIN QUERY PLAN INSERT INTO tasks (title) VALUES ('x')
explain/**/INSERT INTO tasks (title) VALUES ('x')
EXPLAIN UPDATE tasks SET title = 'x'
EXPLAIN QUERY PLAN UPDATE tasks SET title = 'x'
explain/**/UPDATE tasks SET title = 'x'
EXPLAIN DROP TABLE tasks
EXPLAIN QUERY PLAN DROP TABLE tasks
explain/**/DROP TABLE tasks
EXPLAIN SELECT * FROM _changelog
EXPLAIN QUERY PLAN SELECT * FROM _changelog
explain/**/SELECT * FROM _changelog

# Soft-deleted rows, read through something else
SELECT * FROM main.tasks
SELECT title FROM main.tasks
SELECT count(*) FROM main.tasks
SELECT * FROM "main"."tasks"
SELECT * FROM [main].tasks
SELECT * FROM `main`.`tasks`
WITH tasks AS (SELECT * FROM main.tasks) SELECT * FROM tasks
WITH tasks AS (SELECT * FROM main.tasks) SELECT count(*) FROM tasks
WITH a AS (SELECT * FROM main.tasks), tasks AS (SELECT * FROM a) SELECT * FROM tasks
WITH RECURSIVE tasks(title) AS (SELECT title FROM main.tasks UNION SELECT title FROM tasks) SELECT * FROM tasks
SELECT * FROM main.tasks AS tasks
SELECT * FROM (SELECT * FROM main.tasks) AS tasks
SELECT t.* FROM tasks JOIN main.tasks AS t
SELECT * FROM tasks NATURAL JOIN main.tasks
SELECT * FROM tasks UNION SELECT * FROM main.tasks
SELECT * FROM tasks WHERE id IN (SELECT id FROM main.tasks)
SELECT (SELECT group_concat(title) FROM main.tasks)
SELECT group_concat(title) FROM main.tasks
SELECT json_group_array(title) FROM main.tasks
SELECT title FROM main.tasks WHERE _deleted_at IS NOT NULL
SELECT * FROM main.tasks INDEXED BY sqlite_autoindex_tasks_1
SELECT * FROM main.tasks NOT INDEXED
SELECT max(title) OVER () FROM main.tasks
SELECT * FROM tasks WHERE _deleted_at IS NOT NULL
SELECT title FROM tasks WHERE (SELECT title FROM main.tasks m WHERE m.id = 2) LIKE 'T%'
SELECT CASE WHEN EXISTS (SELECT 1 FROM main.tasks WHERE title LIKE 'TOMB%') THEN 'yes' END
SELECT * FROM temp.tasks, main.tasks
SELECT rowid, * FROM main.tasks
SELECT * FROM main.tasks LIMIT 1 OFFSET 1
VALUES ((SELECT title FROM main.tasks WHERE id = 2))
SELECT * FROM json_each((SELECT json_group_array(title) FROM main.tasks))
WITH tasks(title) AS MATERIALIZED (SELECT title FROM main.tasks) SELECT * FROM tasks
WITH x AS NOT MATERIALIZED (SELECT * FROM main.tasks) SELECT * FROM x

# Writing where only reading is allowed, deleting where nothing may be deleted
WITH x AS (SELECT 1) INSERT INTO tasks (title) SELECT 'forged' FROM x RETURNING *
WITH x AS (SELECT 1) DELETE FROM tasks RETURNING *
WITH x AS (SELECT 1) UPDATE tasks SET title = 'forged' RETURNING *
INSERT OR REPLACE INTO tasks (id, title) VALUES (1, 'forged')
REPLACE INTO tasks (id, title) VALUES (1, 'forged')
UPDATE OR REPLACE tasks SET id = 1 WHERE id = 3
DELETE FROM tasks
DELETE FROM tasks WHERE id = 1
DELETE FROM main.tasks
DELETE FROM tasks RETURNING *
DELETE FROM tasks LIMIT 1
UPDATE tasks SET _deleted_at = NULL
UPDATE tasks SET _deleted_at = 'x'
UPDATE tasks SET _created_at = '1999'
UPDATE tasks SET "_updated_at" = '1999'
UPDATE tasks SET (title, _deleted_at) = ('x', NULL)
INSERT INTO tasks (title) VALUES ('a') ON CONFLICT DO UPDATE SET _deleted_at = NULL
INSERT INTO tasks (id, title) VALUES (1, 'x') ON CONFLICT (id) DO UPDATE SET _created_at = '1999'
INSERT INTO tasks (id, title) VALUES (1, 'x') ON CONFLICT (id) DO NOTHING
UPDATE tasks SET id = id + 1000
SELECT * FROM tasks; DELETE FROM tasks
SELECT 1; SELECT 2
SELECT 1;;SELECT 2
;SELECT 1
SELECT 1; -- fine\nDROP TABLE tasks
SELECT 1 /* ; */; DROP TABLE tasks
SELECT 1; DROP TABLE tasks; --
DROP TABLE tasks; CREATE TABLE tasks (a)
DROP TABLE IF EXISTS _changelog
SELECT ';'; DELETE FROM tasks
SELECT 1 -- ;\n; DELETE FROM tasks
UPDATE tasks SET title = 'x'; DELETE FROM _changelog
INSERT INTO tasks (title) VALUES ('x'); COMMIT; DELETE FROM _changelog

# Triggers, views, virtual and temporary tables
CREATE TRIGGER tr AFTER INSERT ON tasks BEGIN DELETE FROM _changelog; END
CREATE TEMP TRIGGER tr AFTER INSERT ON tasks BEGIN DELETE FROM _changelog; END
CREATE TRIGGER IF NOT EXISTS main.tr AFTER INSERT ON tasks BEGIN DELETE FROM _changelog; END
CREATE TRIGGER tr AFTER INSERT ON tasks BEGIN INSERT INTO _changelog DEFAULT VALUES; END
CREATE TEMP TRIGGER tr AFTER INSERT ON tasks BEGIN INSERT INTO _changelog DEFAULT VALUES; END
CREATE TRIGGER IF NOT EXISTS main.tr AFTER INSERT ON tasks BEGIN INSERT INTO _changelog DEFAULT VALUES; END
CREATE TRIGGER tr BEFORE DELETE ON tasks BEGIN SELECT RAISE(IGNORE); END
CREATE TEMP TRIGGER tr BEFORE DELETE ON tasks BEGIN SELECT RAISE(IGNORE); END
CREATE TRIGGER IF NOT EXISTS main.tr BEFORE DELETE ON tasks BEGIN SELECT RAISE(IGNORE); END
CREATE TRIGGER tr AFTER UPDATE OF title ON tasks BEGIN UPDATE tasks SET _deleted_at = NULL; END
CREATE TEMP TRIGGER tr AFTER UPDATE OF title ON tasks BEGIN UPDATE tasks SET _deleted_at = NULL; END
CREATE TRIGGER IF NOT EXISTS main.tr AFTER UPDATE OF title ON tasks BEGIN UPDATE tasks SET _deleted_at = NULL; END
CREATE TRIGGER tr AFTER INSERT ON _changelog BEGIN DELETE FROM tasks; END
CREATE TEMP TRIGGER tr AFTER INSERT ON _changelog BEGIN DELETE FROM tasks; END
CREATE TRIGGER IF NOT EXISTS main.tr AFTER INSERT ON _changelog BEGIN DELETE FROM tasks; END
CREATE TRIGGER tr AFTER UPDATE ON _meta BEGIN DELETE FROM _views; END
CREATE TEMP TRIGGER tr AFTER UPDATE ON _meta BEGIN DELETE FROM _views; END
CREATE TRIGGER IF NOT EXISTS main.tr AFTER UPDATE ON _meta BEGIN DELETE FROM _views; END
CREATE TEMP TRIGGER tr INSTEAD OF INSERT ON temp.tasks BEGIN DELETE FROM main.tasks; END
CREATE VIEW v AS SELECT * FROM _changelog
CREATE TEMP VIEW v AS SELECT * FROM _changelog
CREATE VIEW _changelog2 AS SELECT 1
CREATE TEMP VIEW tasks AS SELECT * FROM main.tasks
CREATE TEMP TABLE tasks (a)
CREATE TEMP TABLE x AS SELECT * FROM main._changelog
CREATE TABLE temp._changelog (a)
CREATE TABLE copy AS SELECT * FROM _changelog
CREATE TABLE copy AS SELECT * FROM main.tasks
CREATE VIRTUAL TABLE f USING fts5(a)
CREATE VIRTUAL TABLE f USING fts5(a, content='_changelog')
CREATE VIRTUAL TABLE f USING fts4(a)
CREATE VIRTUAL TABLE f USING fts4aux(main, tasks)
CREATE VIRTUAL TABLE f USING fts5vocab(main, tasks, row)
CREATE VIRTUAL TABLE r USING rtree(id, a, b)
CREATE VIRTUAL TABLE r USING geopoly(a)
CREATE VIRTUAL TABLE d USING dbstat(main)
CREATE VIRTUAL TABLE f USING fts3tokenize('simple')
DROP VIEW tasks
DROP VIEW temp.tasks
DROP TRIGGER tr
CREATE TABLE w (a PRIMARY KEY) WITHOUT ROWID
CREATE TABLE g (a, b AS (a || 'x') STORED)
CREATE TABLE s (a CHECK ((SELECT count(*) FROM _changelog) > 0))
CREATE INDEX i ON tasks (title) WHERE (SELECT 1 FROM _changelog)
CREATE TABLE d (a DEFAULT (load_extension('x')))
ALTER TABLE tasks DROP COLUMN _deleted_at
ALTER TABLE tasks DROP COLUMN _created_at
ALTER TABLE tasks RENAME COLUMN _deleted_at TO gone
ALTER TABLE tasks ADD COLUMN _hidden
ALTER TABLE tasks ADD COLUMN x DEFAULT (sqlite3mc_version())
ALTER TABLE tasks ADD COLUMN x REFERENCES _changelog (id) DEFAULT NULL CHECK (load_extension('x'))
ALTER TABLE main._views RENAME TO v
ALTER TABLE temp.tasks RENAME TO v

# Names and quoting
SELECT * FROM "sqlite_schema"
SELECT * FROM 'sqlite_schema'
SELECT * FROM [sqlite_schema]
SELECT * FROM main.[_changelog]
SELECT/**/hash/**/FROM/**/_changelog
SELECT hash FROM _changelog--
SELECT	hash\nFROM\n_changelog
sElEcT hash fRoM _cHaNgElOg
SELECT * FROM ​_changelog
SELECT * FROM _changelog 
﻿SELECT * FROM _changelog
SELECT _changelog.hash FROM tasks, _changelog
SELECT x.hash FROM _changelog x
SELECT tasks.hash FROM _changelog AS tasks
SELECT * FROM tasks AS _changelog
WITH _changelog AS (SELECT 1 AS hash) SELECT hash FROM main._changelog
CREATE TABLE "a""b" (c)
CREATE TABLE 'x y' (c)
CREATE TABLE t ("_secret")
CREATE TABLE "_x" (c)
CREATE TABLE "sqlite_y" (c)
SELECT "_changelog"
SELECT '_changelog'
SELECT quote(x) FROM (SELECT hash AS x FROM _changelog)
SELECT * FROM tasks WHERE title = '' OR 1=1 UNION SELECT hash,1,1,1,1,1,1 FROM _changelog --'

# Bombs
WITH RECURSIVE n(x) AS (SELECT 1 UNION ALL SELECT x + 1 FROM n) SELECT max(x) FROM n
WITH RECURSIVE n(x) AS (SELECT 1 UNION ALL SELECT x + 1 FROM n) INSERT INTO tasks (title) SELECT x FROM n
WITH RECURSIVE n(x) AS (SELECT 1 UNION ALL SELECT x + 1 FROM n) UPDATE tasks SET title = (SELECT count(*) FROM n)
WITH RECURSIVE n(x) AS (SELECT zeroblob(900000) UNION ALL SELECT zeroblob(900000) FROM n) SELECT count(*) FROM n
WITH RECURSIVE n(x, y) AS (SELECT 1, randomblob(500000) UNION ALL SELECT x + 1, randomblob(500000) FROM n) SELECT count(DISTINCT y) FROM n
SELECT zeroblob(1000000000)
SELECT randomblob(1000000000)
SELECT hex(zeroblob(999999))
SELECT replace(hex(zeroblob(400000)), '0', 'xxxxxxxxxxxxxxxxxxxxxxxx')
SELECT printf('%1000000000d', 1)
SELECT printf('%.*c', 1000000000, 'x')
SELECT group_concat(a.title || b.title) FROM (SELECT hex(zeroblob(400000)) AS title) a, (SELECT hex(zeroblob(400000)) AS title) b
INSERT INTO tasks (title) VALUES (zeroblob(1000000000))
INSERT INTO tasks (title) VALUES (hex(zeroblob(600000)))
UPDATE tasks SET title = hex(zeroblob(600000))
SELECT {{(*200}}1{{)*200}}
SELECT 1{{+1*2999}}
SELECT 1{{, 1*2099}}
SELECT 1{{ UNION SELECT 1*600}}
SELECT {{abs(*150}}1{{)*150}}
SELECT max(1{{,1*299}})
SELECT title LIKE '{{%a*2000}}' FROM tasks
SELECT hex(zeroblob(400000)) LIKE '{{%0*240}}x'
SELECT hex(zeroblob(300000)) GLOB '{{*0*200}}x'
SELECT json_extract('{{[*2000}}{{]*2000}}', '$')
SELECT * FROM json_tree('{{[*900}}{{]*900}}')
SELECT count(*) FROM json_each(json_array(1{{,1*89}})) a, json_each(json_array(1{{,1*89}})) b, json_each(json_array(1{{,1*89}})) c, json_each(json_array(1{{,1*89}})) d, json_each(json_array(1{{,1*89}})) e
SELECT strftime('{{%Y*40000}}')
SELECT string_agg(x, hex(zeroblob(90000))) FROM (SELECT hex(zeroblob(90000)) x UNION ALL SELECT hex(zeroblob(90000)) UNION ALL SELECT hex(zeroblob(90000)) UNION ALL SELECT 'y' UNION ALL SELECT hex(zeroblob(90000)))
SELECT '{{x*120000}}'
SELECT CAST(x'ff' AS TEXT)
INSERT INTO tasks (title) VALUES (CAST(x'fffe' AS TEXT))
UPDATE tasks SET title = CAST(x'ff' AS TEXT)
SELECT char(0, 0)
INSERT INTO tasks (title) VALUES (char(0) || 'x')
SELECT 9223372036854775807 + 1
SELECT abs(-9223372036854775808)
SELECT 1e999, -1e999
CREATE TABLE wide (a{{, 1*2100}})

# MUST BE REFUSED: each of the following, by every tool, with words

# Counting what belongs to the host
SELECT count(*) FROM _changelog
SELECT count(*) FROM _views
SELECT count(*) FROM _tables
SELECT count(*) FROM _meta
SELECT 1 FROM _changelog
SELECT 1 FROM "_changelog" AS t LIMIT 1
SELECT count(*) FROM main._changelog
SELECT EXISTS (SELECT 1 FROM _meta)
SELECT title FROM tasks WHERE EXISTS (SELECT 1 FROM _tables)
SELECT count(*) FROM tasks, _changelog
SELECT count(*) FROM tasks LEFT JOIN _changelog
SELECT (SELECT count(*) FROM _changelog) FROM tasks
WITH c AS (SELECT count(*) AS n FROM _changelog) SELECT n FROM c
WITH c AS (SELECT 1 FROM _changelog) SELECT count(*) FROM c
SELECT count(*) FROM (SELECT 1 FROM _changelog)
SELECT 1 UNION ALL SELECT 1 FROM _views
INSERT INTO tasks (title) SELECT count(*) FROM _changelog
INSERT INTO tasks (title) SELECT 'x' FROM _meta
UPDATE tasks SET title = (SELECT count(*) FROM _changelog)
SELECT count(*) FROM sqlite_schema
SELECT 1 FROM sqlite_master
SELECT count(*) FROM sqlite_temp_schema
SELECT count(*) FROM sqlite_sequence

# Virtual tables by name
SELECT count(*) FROM dbstat
SELECT * FROM dbstat
SELECT name FROM main.dbstat
SELECT count(*) FROM main.dbstat
SELECT count(*) FROM "DBSTAT"
INSERT INTO tasks (title) SELECT name FROM dbstat
INSERT INTO tasks (title) SELECT count(*) FROM dbstat
UPDATE tasks SET title = (SELECT group_concat(name) FROM dbstat)
SELECT count(*) FROM jsonb_each('[1]')
SELECT count(*) FROM jsonb_tree('[1]')
SELECT value FROM jsonb_each('[1]')
INSERT INTO tasks (title) SELECT value FROM jsonb_each('[1]')
SELECT count(*) FROM fts3tokenize('simple', 'a b')
SELECT token FROM fts3tokenize('simple', 'a b')
SELECT count(*) FROM pragma_table_info('tasks')
SELECT count(*) FROM pragma_table_list
SELECT count(*) FROM PRAGMA_database_list
SELECT name FROM pragma_module_list
INSERT INTO tasks (title) SELECT name FROM pragma_function_list
SELECT count(*) FROM generate_series(1, 3)
SELECT count(*) FROM bytecode('SELECT 1')
SELECT count(*) FROM sqlite_stmt

# Tables named like table-valued functions
CREATE TABLE json_each (key, value)
CREATE TABLE json_tree (a)
CREATE TABLE "JSON_Each" (a)
CREATE TABLE jsonb_each (a)
CREATE TABLE jsonb_tree (a)
CREATE TABLE dbstat (a)
CREATE TABLE generate_series (a)
CREATE TABLE pragma_table_info (a)
CREATE TABLE fts5vocab (a)
ALTER TABLE tasks RENAME TO json_each
ALTER TABLE tasks RENAME TO json_tree
ALTER TABLE tasks RENAME TO dbstat
CREATE TABLE x (a); ALTER TABLE x RENAME TO json_each

# Columns that hide the row id
CREATE TABLE x (rowid TEXT)
CREATE TABLE x (id INTEGER PRIMARY KEY, "RowID" TEXT)
CREATE TABLE x (a, oid INTEGER)
CREATE TABLE x ([_rowid_] TEXT, a)
CREATE TABLE x (rowid, oid, _rowid_)
CREATE TABLE x (`OID` TEXT UNIQUE)
ALTER TABLE tasks ADD COLUMN rowid TEXT
ALTER TABLE tasks ADD COLUMN "oId" TEXT
ALTER TABLE tasks ADD COLUMN _rowid_ TEXT
ALTER TABLE tasks RENAME COLUMN title TO rowid
ALTER TABLE tasks RENAME title TO oid
CREATE TABLE x (rowid INTEGER PRIMARY KEY, a)

# The host's columns
CREATE TABLE x (a, _deleted_at TEXT)
CREATE TABLE x (a, _deleted_at TEXT DEFAULT 'never')
CREATE TABLE x (a, _created_at TEXT NOT NULL)
CREATE TABLE x (a, _created_at TEXT UNIQUE)
CREATE TABLE x (a, _updated_at TEXT CHECK (_updated_at < '2000'))
CREATE TABLE x (a, _deleted_at TEXT GENERATED ALWAYS AS (NULL) VIRTUAL)
CREATE TABLE x (a, _deleted_at AS (a) STORED)
CREATE TABLE x (a, _DELETED_AT INTEGER)
CREATE TABLE x (_created_at TEXT PRIMARY KEY, a)
CREATE TABLE x (a, "_updated_at" REFERENCES tasks (id))
CREATE TABLE x (a, _deleted_at TEXT COLLATE NOCASE)
CREATE TABLE x (a, _deleted_at TEXT, CHECK (_deleted_at IS NULL))
CREATE TABLE x (a, _deleted_at TEXT, UNIQUE (_deleted_at))
ALTER TABLE tasks ADD COLUMN x TEXT CHECK (_deleted_at IS NULL)
ALTER TABLE tasks ADD COLUMN x TEXT CHECK (x IS NULL OR _updated_at > '')
ALTER TABLE tasks ADD COLUMN x AS (_deleted_at)
ALTER TABLE tasks ADD CONSTRAINT c CHECK (_deleted_at IS NULL OR _deleted_at > '')
ALTER TABLE tasks ALTER COLUMN _deleted_at SET NOT NULL
ALTER TABLE tasks ALTER COLUMN _created_at DROP NOT NULL
ALTER TABLE tasks RENAME COLUMN _deleted_at TO gone
ALTER TABLE tasks RENAME COLUMN title TO _deleted_at
ALTER TABLE tasks DROP COLUMN _created_at
CREATE INDEX i ON tasks (_deleted_at)
CREATE UNIQUE INDEX i ON tasks (_updated_at)
CREATE INDEX i ON tasks (title, _created_at DESC)
CREATE INDEX i ON tasks (lower(_deleted_at))
CREATE INDEX i ON tasks (title) WHERE _deleted_at IS NULL
CREATE TABLE x (a REFERENCES tasks (_deleted_at))
CREATE TABLE x (a, FOREIGN KEY (a) REFERENCES tasks (_created_at) ON DELETE CASCADE)
CREATE TABLE x (a REFERENCES _changelog (id))
CREATE TABLE x (a REFERENCES _views (name) ON DELETE CASCADE)
CREATE TABLE x (a, FOREIGN KEY (a) REFERENCES sqlite_master (name))
INSERT INTO tasks (title, _created_at, _updated_at, _deleted_at) VALUES ('x', '1999-01-01', '1999-01-01', '1999-01-01'); SELECT 1
CREATE TABLE x (a); INSERT INTO x (a, _created_at, _updated_at) VALUES (1, '1999', '1999')
CREATE TABLE x (a); INSERT INTO x (a, _deleted_at) VALUES (1, '1999')
CREATE TABLE x (a); INSERT INTO x SELECT 1, '1999', _updated_at, NULL FROM tasks
CREATE TABLE x (a); INSERT INTO x SELECT title, _created_at, _updated_at, '1999' FROM tasks
UPDATE tasks SET _created_at = '1999'
UPDATE tasks SET _deleted_at = NULL
INSERT INTO tasks (id, title) VALUES (1, 'x') ON CONFLICT (id) DO UPDATE SET _deleted_at = 'x'

# Values and defaults that close a table
INSERT INTO tasks (title, hours) VALUES ('x', 9e999)
INSERT INTO tasks (title, hours) VALUES ('x', '9e999')
INSERT INTO tasks (title, hours) SELECT 'x', -1e308 * 10
UPDATE tasks SET hours = -9e999 WHERE id = 1
UPDATE tasks SET hours = 1e308 * 1e10 WHERE id = 1
INSERT INTO tasks (id, title) VALUES (1, 'x') ON CONFLICT (id) DO UPDATE SET hours = 9e999
ALTER TABLE tasks ADD COLUMN x REAL DEFAULT 9e999
ALTER TABLE tasks ADD COLUMN x REAL DEFAULT -9e999
CREATE TABLE x (a REAL DEFAULT 9e999)
CREATE TABLE x (a DEFAULT (CAST(x'ff' AS TEXT)))
ALTER TABLE tasks ADD COLUMN x TEXT DEFAULT (CAST(x'ff' AS TEXT))
ALTER TABLE tasks ADD COLUMN x INTEGER DEFAULT 'abc'
CREATE TABLE x (a INTEGER DEFAULT 'abc') STRICT
CREATE TABLE x (a TEXT DEFAULT x'ff') STRICT
CREATE TABLE x (a BLOB DEFAULT 'text') STRICT
CREATE TABLE x (a TEXT DEFAULT (zeroblob(2000000)))
CREATE TABLE x (a DEFAULT (1 /* ) */ + CAST(x'fffe' AS TEXT || '')))
INSERT INTO tasks (title) VALUES (CAST(x'ff' AS TEXT)); SELECT 2
